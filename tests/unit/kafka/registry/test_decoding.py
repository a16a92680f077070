"""Values in Confluent's framing, written by Confluent's serializers, as we show them and as its deserializers do."""

import json
import math
import struct
import sys
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from logkeep.formats.schemas.avro_values import AvroReader, Undecodable
from logkeep.kafka.registry import values
from logkeep.kafka.registry.decoding import DecodeMode, RecordDecoder
from logkeep.kafka.registry.schema_source import DirectorySchemas, RegistrySchemas
from logkeep.kafka.registry.values import ArchivedRegistry, SchemaDefinition, SubjectVersion

CONTEXT = SerializationContext("orders", MessageField.VALUE)
ADDRESS = {"type": "record", "name": "Address", "namespace": "shop", "fields": [{"name": "city", "type": "string"}]}
FIRST = {
    "type": "record", "name": "Order", "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "weights", "type": {"type": "array", "items": "double"}},
        {"name": "tags", "type": {"type": "map", "values": "int"}}, {"name": "raw", "type": "bytes"},
    ],
}  # fmt: skip
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "state", "type": "string", "default": "new"}]}
REFERRING = {
    "type": "record", "name": "Parcel", "namespace": "shop",
    "fields": [{"name": "to", "type": "shop.Address"}, {"name": "from", "type": "shop.Address"}],
}  # fmt: skip
PERSON = {"title": "Person", "type": "object", "properties": {"name": {"type": "string"}}}


@pytest.fixture
def client() -> SchemaRegistryClient:
    return SchemaRegistryClient.new_client({"url": "mock://decoding"})


def archived(client: SchemaRegistryClient) -> RegistrySchemas:
    """What a backup would have of this registry."""
    definitions: dict[int, SchemaDefinition] = {}
    versions = []
    for subject in client.get_subjects():
        for number in client.get_versions(subject):
            found = client.get_version(subject, number)
            references = [values.SchemaReference(r.name, r.subject, r.version) for r in found.schema.references or ()]
            definitions[found.schema_id] = SchemaDefinition(
                found.schema_id, found.schema.schema_str, found.schema.schema_type or "AVRO", tuple(references),
                guid=found.guid or "",
            )  # fmt: skip
            versions.append(SubjectVersion(subject, number, found.schema_id))
    registry = ArchivedRegistry(origin="topic", definitions=tuple(definitions.values()), versions=tuple(versions))
    return RegistrySchemas(registry)


def order(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "note": "ü" if number % 2 else None,
        "weights": [0.5, -1e300],
        "tags": {"a": 1},
        "raw": b"\0",
        **more,
    }


def test_avro_of_two_versions_is_shown_as_it_was_written(client: SchemaRegistryClient) -> None:
    written = []
    for schema, value in ((FIRST, order(2**62)), (SECOND, order(7, state="sent"))):
        written.append(AvroSerializer(client, json.dumps(schema))(value, CONTEXT))
    decoder = RecordDecoder(DecodeMode.AUTO, archived(client))
    reading = AvroDeserializer(client)
    for data in written:
        found, theirs = decoder.decode(data), reading(data, CONTEXT)
        assert (found.form, found.problem, found.bytes) == ("avro", None, len(data))
        assert found.json == {**theirs, "raw": "AA=="}
    assert decoder.decode(written[0]).schema_id != decoder.decode(written[1]).schema_id
    assert "state" not in decoder.decode(written[0]).json


def test_references_are_resolved_by_subject_and_version(client: SchemaRegistryClient) -> None:
    client.register_schema("address", Schema(json.dumps(ADDRESS), "AVRO"))
    schema = Schema(json.dumps(REFERRING), "AVRO", [SchemaReference("shop.Address", "address", 1)])
    data = AvroSerializer(client, schema)({"to": {"city": "Bern"}, "from": {"city": "Chur"}}, CONTEXT)
    found = RecordDecoder(DecodeMode.AVRO, archived(client)).decode(data)
    assert found.json == AvroDeserializer(client)(data, CONTEXT) == {"to": {"city": "Bern"}, "from": {"city": "Chur"}}
    lost = archived(client)
    broken = ArchivedRegistry(origin="topic", definitions=tuple(d for d in lost.registry.definitions if d.references))
    told = RecordDecoder(DecodeMode.AVRO, RegistrySchemas(broken)).decode(data)
    assert told.form == "hex"
    assert "it refers to version 1 of address, which is not archived" in (told.problem or "")


def test_json_with_a_schema_is_shown_as_json(client: SchemaRegistryClient) -> None:
    data = JSONSerializer(json.dumps(PERSON), client)({"name": "Ada"}, CONTEXT)
    found = RecordDecoder(DecodeMode.AUTO, archived(client)).decode(data)
    assert found.json == JSONDeserializer(json.dumps(PERSON), schema_registry_client=client)(data, CONTEXT)
    assert (found.form, found.schema_id is not None) == ("json", True)


def test_a_guid_in_a_header_names_the_schema() -> None:
    guid = "00112233-4455-6677-8899-aabbccddeeff"
    registry = ArchivedRegistry(origin="topic", definitions=(SchemaDefinition(4, '"long"', guid=guid),))
    decoder = RecordDecoder(DecodeMode.AUTO, RegistrySchemas(registry))
    header = b"\x01" + bytes.fromhex(guid.replace("-", ""))
    assert decoder.decode(b"\x06", header).json == 3
    unknown = decoder.decode(b"\xff", b"\x01" + bytes(16))
    assert unknown.problem == "schema 00000000-0000-0000-0000-000000000000 is not archived"


def test_an_id_means_the_schema_of_its_topics_own_context() -> None:
    registry = ArchivedRegistry(
        origin="topic",
        definitions=(SchemaDefinition(7, '"long"'), SchemaDefinition(7, '"string"', context=".other")),
        versions=(SubjectVersion("else-value", 1, 7), SubjectVersion(":.other:orders-value", 1, 7)),
    )
    decoder = RecordDecoder(DecodeMode.AUTO, RegistrySchemas(registry))
    found = [decoder.decode(framed(b"\x02a"), None, f"orders-{side}") for side in ("value", "key")]
    assert [(each.json, each.problem) for each in found] == [
        ("a", None),
        (None, "schema 7: bytes are left after its value"),
    ]


def decoder_of(schema: object, mode: DecodeMode = DecodeMode.AUTO) -> RecordDecoder:
    return RecordDecoder(mode, DirectorySchemas({7: ("AVRO", json.dumps(schema))}))


def framed(body: bytes, number: int = 7) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + body


def test_a_first_byte_of_zero_is_no_frame_unless_it_decodes_to_its_end() -> None:
    decoder = decoder_of("long")
    assert decoder.decode(framed(b"\x02")).json == 1
    assert decoder.decode(framed(b"\x02\x02")).problem == "schema 7: bytes are left after its value"
    assert decoder.decode(framed(b"")).problem == "schema 7: it is not a value of its schema: EOFError"
    assert decoder.decode(framed(b"\x02", 8)).problem == "schema 8 is not archived"
    assert decoder.decode((5).to_bytes(8, "big")).problem is None, "a number: no schema has the id 0"
    assert decoder.decode(b"text").text == "text"
    assert RecordDecoder(DecodeMode.AUTO, None).decode(framed(b"\x02")).problem is None
    wide = b"\0" + (7).to_bytes(8, "big") + b"\x02"
    assert decoder.decode(wide).json == 1


def test_values_that_json_cannot_hold_become_text() -> None:
    doubles = decoder_of({"type": "array", "items": "double"})
    data = b"\x04" + struct.pack("<dd", math.nan, math.inf) + b"\0"
    assert doubles.decode(framed(data)).json == ["nan", "inf"]
    assert (
        decoder_of({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})
        .decode(framed(b"\x04\x30\x39"))
        .json
        == "123.45"
    )
    assert RecordDecoder(DecodeMode.JSON, None).decode(b'["\\ud800", 1e999, 123456789012345678901234567890]').json == [
        "\\ud800", "inf", "123456789012345678901234567890",
    ]  # fmt: skip


NODE = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}


def test_hostile_values_and_schemas_end_with_a_reason() -> None:
    """The first one ends the process where fastavro's compiled reader reads it."""
    assert decoder_of(NODE).decode(framed(b"\x02" * 5_000_000 + b"\0")).problem == "schema 7: it is nested too deep"
    assert decoder_of(NODE).decode(framed(b"\x02\x02\0")).json == {"next": {"next": {"next": None}}}
    empty = {
        "type": "record",
        "name": "E",
        "fields": [{"name": "n", "type": {"type": "fixed", "name": "F", "size": 0}}],
    }
    for items in ("null", empty):
        with pytest.raises(Undecodable, match="arrays whose items take no bytes"):
            AvroReader([json.dumps({"type": "array", "items": items})])
    lie = bytes([0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F])
    assert "EOF" in (decoder_of({"type": "array", "items": "int"}).decode(framed(lie)).problem or "")
    assert "expected" in (decoder_of("bytes").decode(framed(lie)).problem or "").lower()
    for text in ("{", '{"type": "record"}', '"nothing"', "[" * 5000):
        with pytest.raises(Undecodable, match="its schema cannot be used"):
            AvroReader([text])
    doubling = [{"type": "record", "name": f"T{n}", "fields": [
        {"name": f"f{m}", "type": f"T{n - 1}" if n else "int"} for m in range(4)]} for n in range(60)]  # fmt: skip
    AvroReader([json.dumps(each) for each in doubling])
    bomb = [{"type": "record", "name": f"B{n}", "fields": [
        {"name": f"f{m}", "type": f"B{n - 1}"} for m in range(2 if n else 0)]} for n in range(30)]  # fmt: skip
    with pytest.raises(Undecodable, match="too large values of no bytes"):
        AvroReader([json.dumps(each) for each in bomb])
    AvroReader([json.dumps(each) for each in bomb[:10]])


def test_without_the_library_a_row_says_so_and_others_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    found = decoder_of("string").decode(framed(b"\x02a"))
    assert "install logkeep with the extra" in (found.problem or "")
