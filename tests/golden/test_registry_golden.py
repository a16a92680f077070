"""Captured registries that earlier versions wrote must be read for ever."""

from pathlib import Path

from logkeep.kafka.registry.attachment import RegistryDocument
from logkeep.kafka.registry.values import (
    ArchivedRegistry,
    SchemaDefinition,
    SchemaReference,
    SubjectSetting,
    SubjectVersion,
)
from logkeep.repository.chain.documents import seal, unseal

FILE = Path(__file__).parent / "kafka" / "registry.v2.json"
DOCUMENT = RegistryDocument(
    version=2,
    repository="0123456789abcdef0123456789abcdef",
    source="shop",
    id=20261118001348,
    url="http://registry:8081",
    captured="2026-11-18T00:13:48Z",
    registry=ArchivedRegistry(
        origin="apicurio",
        definitions=(
            SchemaDefinition(1, '{"type":"string"}'),
            SchemaDefinition(2, "syntax", "PROTOBUF", (SchemaReference("ünï", "a", 1),), "guid", ".context", True),
        ),
        versions=(SubjectVersion("a", 1, 1), SubjectVersion("b", 7, 1, True)),
        compatibility=(SubjectSetting("FULL"), SubjectSetting("NONE", "a")),
        modes=(SubjectSetting("READWRITE"),),
        highest_id=9,
        unreadable=1,
        first_unreadable=3,
    ),
    export=b"PK\x03\x04 \xff",
)


def test_the_stored_bytes_are_read_and_written_as_ever() -> None:
    data = FILE.read_bytes()
    assert unseal(data, RegistryDocument, "golden") == DOCUMENT
    assert seal(DOCUMENT) == data
