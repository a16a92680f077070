"""Reads a registry from the records of its topic `_schemas`. Pure: records in, a registry out.

The registries of Confluent, Karapace and Redpanda keep their state in this topic and apply its records in order. Keys
and values are JSON; the order of their fields differs between registries.

    SCHEMA          subject, version → id, schema, schemaType, references, metadata, ruleSet, deleted
    DELETE_SUBJECT  subject → version: all its versions up to this one are deleted, and can still be read
    CLEAR_SUBJECT   subject: its deleted versions are gone for good
    CONFIG, MODE    subject, or none for all → compatibilityLevel, mode
    NOOP, CONTEXT   nothing that matters here

A null or empty value takes the key's content away: Karapace writes an empty one when a schema is deleted for good.
"""

from collections.abc import Iterable

import msgspec

from logkeep.kafka.registry.schema_json import WrittenSchema
from logkeep.kafka.registry.values import (
    ArchivedRegistry,
    SchemaDefinition,
    SchemaVersion,
    SubjectSetting,
    SubjectVersion,
    context_of,
)

TOPIC = "_schemas"
_NOTHING = {"NOOP", "CONTEXT"}


class _Key(msgspec.Struct):
    keytype: str
    subject: str | None = None
    version: SchemaVersion | None = None


class _Schema(WrittenSchema, kw_only=True):
    deleted: bool = False


class _Deletion(msgspec.Struct):
    version: SchemaVersion | None = None


class _Config(msgspec.Struct, rename={"level": "compatibilityLevel"}):
    level: str | None = None


class _Mode(msgspec.Struct):
    mode: str | None = None


class SchemasTopic:
    """A registry, record by record."""

    def __init__(self) -> None:
        self._definitions: dict[tuple[str, int], SchemaDefinition] = {}
        self._versions: dict[tuple[str, int], SubjectVersion] = {}
        self._compatibility: dict[str, str] = {}
        self._modes: dict[str, str] = {}
        self._unreadable, self._first_unreadable = 0, -1

    def take(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        """The next record of the topic."""
        try:
            self._apply(msgspec.json.decode(key or b"", type=_Key), value or b"")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self._first_unreadable = offset if not self._unreadable else self._first_unreadable
            self._unreadable += 1

    def registry(self) -> ArchivedRegistry:
        used = {(context_of(v.subject), v.id) for v in self._versions.values()}
        return ArchivedRegistry(
            origin="topic",
            definitions=tuple(
                msgspec.structs.replace(found, erased=key not in used)
                for key, found in sorted(self._definitions.items())
            ),
            versions=tuple(self._versions[key] for key in sorted(self._versions)),
            compatibility=_settings(self._compatibility),
            modes=_settings(self._modes),
            highest_id=max((number for context, number in self._definitions if not context), default=0),
            unreadable=self._unreadable,
            first_unreadable=self._first_unreadable,
        )

    def _apply(self, key: _Key, value: bytes) -> None:
        subject = key.subject or ""
        match key.keytype:
            case "SCHEMA":
                self._schema(subject, key.version, value)
            case "DELETE_SUBJECT":
                self._delete(subject, value)
            case "CLEAR_SUBJECT":
                gone = [at for at, found in self._versions.items() if at[0] == subject and found.deleted]
                for at in gone:
                    del self._versions[at]
            case "CONFIG":
                _set(self._compatibility, subject, msgspec.json.decode(value, type=_Config).level if value else None)
            case "MODE":
                _set(self._modes, subject, msgspec.json.decode(value, type=_Mode).mode if value else None)
            case kind if kind not in _NOTHING:
                raise msgspec.ValidationError(kind)

    def _schema(self, subject: str, version: int | None, value: bytes) -> None:
        if version is None or not subject:
            raise msgspec.ValidationError("a schema without subject or version")
        if not value:
            self._versions.pop((subject, version), None)
            return
        found = msgspec.json.decode(value, type=_Schema)
        context = context_of(subject)
        self._definitions[context, found.id] = found.definition(context)
        self._versions[subject, version] = SubjectVersion(subject, version, found.id, found.deleted, found.contract)

    def _delete(self, subject: str, value: bytes) -> None:
        """Note the deletion of a subject. Without a value, forget that: its versions were registered again, or are gone
        for good."""
        if not value:
            return
        last = msgspec.json.decode(value, type=_Deletion).version
        for at, found in self._versions.items():
            if at[0] == subject and (last is None or at[1] <= last):
                self._versions[at] = msgspec.structs.replace(found, deleted=True)


def registry_of(records: Iterable[tuple[int, bytes | None, bytes | None]]) -> ArchivedRegistry:
    """The registry that these records (offset, key, value) of the topic describe, in their order."""
    topic = SchemasTopic()
    for record in records:
        topic.take(*record)
    return topic.registry()


def _set(settings: dict[str, str], subject: str, value: str | None) -> None:
    if value is None:
        settings.pop(subject, None)
    else:
        settings[subject] = value


def _settings(found: dict[str, str]) -> tuple[SubjectSetting, ...]:
    return tuple(SubjectSetting(found[subject], subject) for subject in sorted(found))
