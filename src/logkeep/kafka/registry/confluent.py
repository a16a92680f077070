"""The registry API of Confluent, which Karapace, Redpanda and Apicurio have too: reads all, makes single changes.

Deleted subjects and versions are read as well: records that were written with them are still there. The API does not
report the highest id ever issued; the highest that it shows counts.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec

from logkeep.errors import ClusterError, InvalidAnswer
from logkeep.kafka.registry.client import RegistryAnswer, RegistryClient, expect, expect_api
from logkeep.kafka.registry.schema_json import WrittenSchema
from logkeep.kafka.registry.values import (
    AVRO,
    ArchivedRegistry,
    RegistryOrigin,
    SchemaDefinition,
    SchemaId,
    SchemaVersion,
    SubjectSetting,
    SubjectVersion,
    context_of,
)

T = TypeVar("T")
_MOST_TEXT_BYTES: Final = 256 << 20
_NOT_SET: Final = {404, 405}
Listed = tuple[tuple[str, int, bool], ...]
"""Subject, version, and whether it is deleted."""


class _Version(WrittenSchema, kw_only=True):
    subject: str
    version: SchemaVersion


class _Id(msgspec.Struct):
    id: SchemaId


@dataclass(frozen=True)
class ConfluentApi:
    """`base` is the path of the API on the client's host."""

    client: RegistryClient
    base: str
    origin: RegistryOrigin = "confluent"
    root: str = ""
    """Apicurio: the path before its own API."""

    def listing(self) -> Listed:
        """Every version of every subject, deleted ones too."""
        live = set(self._subjects("/subjects"))
        return tuple(found for subject in self.subjects() for found in self._versions(subject, live))

    def subjects(self) -> list[str]:
        """All subjects, deleted ones too."""
        return sorted(self._subjects("/subjects?deleted=true"))

    def _subjects(self, path: str) -> list[str]:
        return self._typed(expect_api(self._get(path)), list[str])

    def _versions(self, subject: str, live: set[str]) -> Iterator[tuple[str, int, bool]]:
        path = f"/subjects/{quote(subject, safe='')}/versions"
        there = set(self._list(path, SchemaVersion)) if subject in live else set()
        for version in sorted({*self._list(f"{path}?deleted=true", SchemaVersion), *there}):
            yield subject, version, version not in there

    def read(self, listed: Listed, also: Iterable[str] = ()) -> ArchivedRegistry:
        """The registry with these versions, and settings of these other subjects. Raises ClusterError."""
        definitions: dict[tuple[str, int], SchemaDefinition] = {}
        versions, text_bytes = list[SubjectVersion](), 0
        for subject, version, deleted in listed:
            found = self._version(subject, version)
            context = context_of(subject)
            definitions[context, found.id] = found.definition(context)
            versions.append(SubjectVersion(subject, version, found.id, deleted, found.contract))
            text_bytes += len(found.text)
            if text_bytes > _MOST_TEXT_BYTES:
                raise InvalidAnswer(f"its schemas have more than {_MOST_TEXT_BYTES >> 20} MiB", subject=self.base)
        subjects = ("", *dict.fromkeys((*(subject for subject, _, _ in listed), *filter(None, also))))
        return ArchivedRegistry(
            origin=self.origin,
            definitions=tuple(definitions[key] for key in sorted(definitions)),
            versions=tuple(versions),
            compatibility=self._settings("config", "compatibilityLevel", subjects),
            modes=self._settings("mode", "mode", subjects),
            highest_id=max((number for context, number in definitions if not context), default=0),
        )

    def _version(self, subject: str, version: int) -> _Version:
        path = f"/subjects/{quote(subject, safe='')}/versions/{version}?deleted=true"
        found = self._typed(self._get(path), _Version)
        if found.subject != subject or found.version != version:
            what = f"version {found.version} of {found.subject} is no answer to a question for version {version}"
            raise InvalidAnswer(what, subject=subject)
        return found

    def text_of(self, schema_id: int) -> str | None:
        """The schema with an id; None if the registry has none."""
        answer = self._get(f"/schemas/ids/{schema_id}")
        return None if answer.status == 404 else str(self._typed(answer, dict[str, Any]).get("schema"))

    def register(self, version: SubjectVersion, definition: SchemaDefinition) -> int:
        """Register a schema with its id and version. Returns the id that the registry answered with, which may differ:
        a success proves nothing."""
        body: dict[str, object] = {"schema": definition.text, "id": version.id, "version": version.version}
        if definition.type != AVRO:
            body["schemaType"] = definition.type
        if definition.references:
            body["references"] = msgspec.to_builtins(definition.references)
        path = f"/subjects/{quote(version.subject, safe='')}/versions"
        return self._typed(self.client.send("POST", self.base + path, body), _Id).id

    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> None:
        """Delete a version, or a subject with all of its versions."""
        path = f"/subjects/{quote(subject, safe='')}" + (f"/versions/{version}" if version is not None else "")
        expect(self.client.request("DELETE", f"{self.base}{path}{'?permanent=true' if permanent else ''}"))

    def mode(self, subject: str = "") -> str | None:
        """The mode for all subjects, or for one; None if the registry has none."""
        return next((setting.value for setting in self._settings("mode", "mode", (subject,))), None)

    def set_mode(self, setting: SubjectSetting) -> None:
        self._set("mode", "mode", setting)

    def set_compatibility(self, setting: SubjectSetting) -> None:
        self._set("config", "compatibility", setting)

    def _set(self, what: str, field: str, setting: SubjectSetting) -> None:
        path = f"/{what}/{quote(setting.subject, safe='')}" if setting.subject else f"/{what}"
        expect(self.client.send("PUT", self.base + path, {field: setting.value}))

    def _settings(self, what: str, field: str, subjects: tuple[str, ...]) -> tuple[SubjectSetting, ...]:
        """The settings that are set; a registry without such settings has none."""
        found = []
        for subject in subjects:
            answer = self._get(f"/{what}/{quote(subject, safe='')}" if subject else f"/{what}")
            if answer.status not in _NOT_SET:
                value = self._typed(answer, dict[str, Any]).get(field)
                found += [SubjectSetting(value, subject)] if isinstance(value, str) else []
        return tuple(found)

    def _list(self, path: str, kind: Any) -> list[Any]:
        found: list[Any] = self._typed(self._get(path), list[kind])
        return found

    def _get(self, path: str) -> RegistryAnswer:
        return self.client.get(self.base + path)

    def _typed(self, answer: RegistryAnswer, kind: type[T]) -> T:
        try:
            return msgspec.convert(expect(answer), type=kind)
        except msgspec.ValidationError as error:
            raise InvalidAnswer(f"the answer is not a registry's: {error}", subject=answer.request) from error


def named_error(error: ClusterError) -> str:
    """An error of the registry in a sentence about something else."""
    return f"{error.subject}: {error.what}"
