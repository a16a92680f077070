"""Reads the export of Apicurio's registry: a zip file with one JSON document per content, version and rule. Pure.

It has what no other answer of that registry has: versions that were deleted (state DISABLED), and contents whose last
version was deleted for good. The id of a schema is its `contentId`; subjects are artifacts of the group `default`.
"""

import io
import zipfile
from collections.abc import Iterator
from typing import Final, TypeVar

import msgspec

from logkeep.errors import InvalidAnswer
from logkeep.kafka.registry.values import (
    ArchivedRegistry,
    SchemaDefinition,
    SchemaId,
    SchemaReference,
    SchemaVersion,
    SubjectSetting,
    SubjectVersion,
)

T = TypeVar("T")
_MOST_BYTES: Final = 512 << 20
"""The largest sum of all unpacked files."""
_DELETED: Final = "DISABLED"
_UNKNOWN: Final = "UNKNOWN"
"""The type of a schema that no version has any more."""
_COMPATIBILITY: Final = "COMPATIBILITY"


class _Content(msgspec.Struct, rename="camel"):
    content_id: SchemaId
    content_hash: str
    serialized_references: str | None = None


class _Reference(msgspec.Struct, rename="camel"):
    artifact_id: str
    version: str | None
    name: str
    group_id: str | None = None


class _Artifact(msgspec.Struct, rename="camel"):
    artifact_id: str
    artifact_type: str
    group_id: str | None = None


class _Version(msgspec.Struct, rename="camel"):
    artifact_id: str
    content_id: SchemaId
    version: str
    version_order: SchemaVersion
    state: str = ""
    group_id: str | None = None


class _Rule(msgspec.Struct, rename={"rule": "type"}):
    configuration: str
    rule: str | None = None
    ruleType: str | None = None  # noqa: N815 - a field of the document
    artifactId: str = ""  # noqa: N815
    groupId: str | None = None  # noqa: N815


def read_export(data: bytes) -> ArchivedRegistry:
    """The registry that an export holds. Raises InvalidAnswer for anything that is not such an export."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(info.file_size for info in archive.infolist()) > _MOST_BYTES:
                raise InvalidAnswer(f"the export has more than {_MOST_BYTES >> 20} MiB when it is unpacked")
            return _registry(archive)
    except (zipfile.BadZipFile, msgspec.MsgspecError, KeyError, ValueError, EOFError, RecursionError) as error:
        raise InvalidAnswer(f"the export cannot be read: {type(error).__name__}: {error}") from error


def _registry(archive: zipfile.ZipFile) -> ArchivedRegistry:
    versions = list(_documents(archive, ".ArtifactVersion.json", _Version))
    types = {
        _subject(a.group_id, a.artifact_id): a.artifact_type for a in _documents(archive, ".Artifact.json", _Artifact)
    }
    orders = {(_subject(v.group_id, v.artifact_id), v.version): v.version_order for v in versions}
    type_of = {v.content_id: types.get(_subject(v.group_id, v.artifact_id), _UNKNOWN) for v in versions}
    definitions = [
        SchemaDefinition(
            content.content_id,
            archive.read(name.removesuffix(".json") + ".data").decode(),
            type_of.get(content.content_id, _UNKNOWN),
            tuple(_references(content, orders)),
            erased=content.content_id not in type_of,
        )
        for name, content in _named(archive, ".Content.json", _Content)
    ]
    return ArchivedRegistry(
        origin="apicurio",
        definitions=tuple(sorted(definitions, key=lambda d: d.id)),
        versions=tuple(
            sorted(
                SubjectVersion(_subject(v.group_id, v.artifact_id), v.version_order, v.content_id, v.state == _DELETED)
                for v in versions
            )
        ),
        compatibility=tuple(sorted(_levels(archive))),
        highest_id=max((d.id for d in definitions), default=0),
    )


def _levels(archive: zipfile.ZipFile) -> Iterator[SubjectSetting]:
    for suffix in (".GlobalRule.json", ".ArtifactRule.json"):
        for rule in _documents(archive, suffix, _Rule):
            if _COMPATIBILITY in (rule.rule, rule.ruleType):
                yield SubjectSetting(rule.configuration, _subject(rule.groupId, rule.artifactId))


def _references(content: _Content, orders: dict[tuple[str, str], int]) -> Iterator[SchemaReference]:
    if content.serialized_references:
        for each in msgspec.json.decode(content.serialized_references, type=tuple[_Reference, ...]):
            subject, version = _subject(each.group_id, each.artifact_id), each.version or ""
            yield SchemaReference(each.name, subject, orders.get((subject, version), -1))


def _subject(group: str | None, artifact: str) -> str:
    return artifact if group in (None, "", "default") else f"{group}:{artifact}"


def _named(archive: zipfile.ZipFile, suffix: str, kind: type[T]) -> Iterator[tuple[str, T]]:
    for name in archive.namelist():
        if name.endswith(suffix):
            yield name, msgspec.json.decode(archive.read(name), type=kind)


def _documents(archive: zipfile.ZipFile, suffix: str, kind: type[T]) -> Iterator[T]:
    return (document for _, document in _named(archive, suffix, kind))
