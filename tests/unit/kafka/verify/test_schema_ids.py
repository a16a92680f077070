"""Ids in archived records against a registry with several contexts."""

import pytest

from logkeep.cli.verbs.kafka.schemas.check import MissingId, missing_ids
from logkeep.engine.inline import InlineEngine
from logkeep.kafka.registry.values import ArchivedRegistry, SchemaDefinition, SubjectVersion, context_of
from logkeep.kafka.verify.schema_ids import find_ids, id_pieces
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.commits import read_chain
from logkeep.repository.chain.format import StoreFacts
from logkeep.store.memory import MemoryStore
from tests.support.kafka.compacted_backups import CompactedSource


def _registry(*versions: tuple[str, int]) -> ArchivedRegistry:
    return ArchivedRegistry(
        origin="topic",
        definitions=tuple(SchemaDefinition(number, "x", context=context_of(subject)) for subject, number in versions),
        versions=tuple(SubjectVersion(subject, at, number) for at, (subject, number) in enumerate(versions, 1)),
    )


def _missing(registry: ArchivedRegistry) -> list[MissingId]:
    """Of a topic `state` with ten values of schema 7, and the last one of schema 8."""
    facts = StoreFacts(put_new=True, replace=True, durable=True)
    source = CompactedSource(create_repository(MemoryStore(), facts, utc_now(), random_token).place("prod"))
    source.write([(b"k%d" % n, b"\0" + (7 if n < 9 else 8).to_bytes(4, "big") + b"body") for n in range(10)])
    source.back_up()
    folded = read_chain(source.place)
    manifest = read_manifest(source.place, folded.completed[-1])
    rows = rows_of(PartReader(source.place), manifest, served_parts(manifest, folded))
    pieces = id_pieces(source.place, folded, manifest, rows, ())
    found = find_ids(source.place, pieces, registry, InlineEngine())
    return [row for use in found.uses for row in missing_ids(use, registry)]


HOME = ((":.other:state-value", 7), ("else-value", 7))


@pytest.mark.parametrize(
    ("registry", "expected"),
    (
        (_registry(*HOME, (":.other:more", 8)), []),
        (_registry(*HOME, ("else-value", 8)), [(8, 1, 9, False, (".",))]),
        (_registry(*HOME, (":.third:x", 8)), [(8, 1, 9, False, (".third",))]),
        (_registry(*HOME), [(8, 1, 9, True, ())]),
        (_registry(*HOME, ("state-value", 8)), []),
        (_registry(("else-value", 7), (":.other:x", 8)), [(8, 1, 9, False, (".other",))]),
    ),
)
def test_ids_are_those_of_the_contexts_that_have_the_subject_of_the_topic(
    registry: ArchivedRegistry, expected: list[tuple[int, int, int, bool, tuple[str, ...]]]
) -> None:
    found = [(m.id, m.records, m.offset, m.certain, m.contexts) for m in _missing(registry)]
    assert found == expected
