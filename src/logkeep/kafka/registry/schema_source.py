"""Where the meaning of schema ids comes from: the archived registry of a backup, or a directory with schemas."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from logkeep.errors import UsageError
from logkeep.kafka.registry.references import in_order
from logkeep.kafka.registry.values import AVRO, ArchivedRegistry, SchemaDefinition

JSON_SCHEMA = "JSON"
_BY_ID = re.compile(r"([0-9]{1,10})\.(avsc|json)", re.ASCII)
_LARGEST_FILE = 16 << 20


@dataclass(frozen=True)
class SchemaTexts:
    """One schema with all that it refers to, which come first."""

    id: int
    type: str
    texts: tuple[str, ...]


class SchemaSource(Protocol):
    def by_id(self, schema_id: int, subject: str) -> SchemaTexts | None:
        """What an id means in records of this subject (`TOPIC-key`, `TOPIC-value`). None if no schema has it. Raises
        Damaged if what it refers to is missing."""

    def by_guid(self, guid: str) -> SchemaTexts | None: ...


@dataclass(frozen=True)
class RegistrySchemas:
    """The registry as it was when the backup was taken, with deleted schemas."""

    registry: ArchivedRegistry

    def by_id(self, schema_id: int, subject: str) -> SchemaTexts | None:
        return self._with_references(self.registry.find_anywhere(schema_id, subject))

    def by_guid(self, guid: str) -> SchemaTexts | None:
        known = (each for each in self.registry.definitions if each.guid.lower() == guid)
        return self._with_references(next(known, None))

    def _with_references(self, one: SchemaDefinition | None) -> SchemaTexts | None:
        if one is None:
            return None
        return SchemaTexts(one.id, one.type, tuple(each.text for each in in_order(self.registry, [one])))


@dataclass(frozen=True)
class DirectorySchemas:
    """The schemas in a directory. `7.avsc` is the Avro schema with the id 7, `8.json` a JSON schema; other `.avsc`
    files define types by name."""

    files: dict[int, tuple[str, str]]
    named: tuple[str, ...] = field(default=())

    def by_id(self, schema_id: int, subject: str) -> SchemaTexts | None:
        found = self.files.get(schema_id)
        if found is None:
            return None
        kind, text = found
        return SchemaTexts(schema_id, kind, (*self.named, text) if kind == AVRO else (text,))

    def by_guid(self, guid: str) -> SchemaTexts | None:
        return None


def read_directory(path: Path) -> DirectorySchemas:
    """The schemas in the files of a directory. Raises UsageError."""
    files: dict[int, tuple[str, str]] = {}
    named = []
    try:
        for each in sorted(path.iterdir()):
            match = _BY_ID.fullmatch(each.name)
            if match is None and each.suffix != ".avsc":
                continue
            text = _text(each)
            if match is None:
                named.append(text)
            else:
                files[int(match[1])] = (AVRO if match[2] == "avsc" else JSON_SCHEMA, text)
    except OSError as error:
        raise UsageError(f"it cannot be read: {error.strerror}", subject=f"--schema-dir {path}") from error
    if not files:
        raise UsageError(
            "no file in it is named after a schema id",
            subject=f"--schema-dir {path}",
            remedy="name the Avro schema with the id 7 `7.avsc`, a JSON schema `7.json`",
        )
    return DirectorySchemas(files, tuple(named))


def _text(path: Path) -> str:
    if path.stat().st_size > _LARGEST_FILE:
        raise UsageError("the file is too large for a schema", subject=str(path))
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError("the file is not text", subject=str(path)) from error
