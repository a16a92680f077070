"""Keys and values as JSON, decoded with the schemas that the backup has: the columns `key_json` and `value_json`.

A value in Confluent's framing is decoded by its schema as it was when the backup was taken; any other is taken if it is
JSON itself. What is neither, is null.
"""

import json
from collections.abc import Iterator

import pyarrow as pa

from logkeep.kafka.record.backup_view import KafkaBackupView
from logkeep.kafka.registry.decoding import DecodeMode, RecordDecoder
from logkeep.kafka.registry.documents import read_registry, topic_logs
from logkeep.kafka.registry.schema_source import RegistrySchemas
from logkeep.repository.chain.commits import read_chain

_GUID_HEADERS = {"key": b"__key_schema_id", "value": b"__value_schema_id"}


def archived_schemas(view: KafkaBackupView) -> RegistrySchemas | None:
    """The schemas of a backup; None if it has no registry. Raises Damaged."""
    captured = any(each.role == "registry" for each in view.manifest.attachments)
    if not captured and not topic_logs(view.manifest):
        return None
    return RegistrySchemas(read_registry(view.place, read_chain(view.place), view.manifest))


class JsonColumns:
    """Makes the columns of batches; schemas are parsed once."""

    def __init__(self, schemas: RegistrySchemas | None) -> None:
        self._decoder = RecordDecoder(DecodeMode.JSON, schemas)

    def column(self, topic: str, records: pa.RecordBatch, name: str) -> pa.Array:
        """`name` is key or value."""
        guids = _guids(records["headers"], _GUID_HEADERS[name])
        values = zip(records[name].to_pylist(), guids, strict=True)
        subject = f"{topic}-{name}"
        return pa.array([self._json(value, guid, subject) for value, guid in values], pa.string())

    def _json(self, value: bytes | None, guid: bytes | None, subject: str) -> str | None:
        found = None if value is None else self._decoder.decode(value, guid, subject)
        return None if found is None or found.problem is not None else json.dumps(found.json)


def _guids(headers: pa.Array, wanted: bytes) -> Iterator[bytes | None]:
    """The content of each record's header with the id of a schema; the last one counts."""
    for some in headers.to_pylist():
        yield next((each["value"] for each in reversed(some) if each["key"] == wanted), None)
