"""What the commands about schemas decide without a server."""

import json
from pathlib import Path

import pytest

from logkeep.cli.verbs.kafka.backup import left_out_registry
from logkeep.cli.verbs.kafka.schemas.check import missing_ids
from logkeep.cli.verbs.kafka.schemas.listing import reference_rows
from logkeep.errors import UsageError
from logkeep.kafka.registry.id_use import SideUse, UnknownId
from logkeep.kafka.registry.values import ArchivedRegistry, SchemaDefinition, SchemaReference, SubjectVersion
from tests.support.kafka.command_in_process import Commands
from tests.support.kafka.compacted_backups import CompactedSource
from tests.support.kafka.registry_steps import settings_of
from tests.support.kafka.whole_backups import new_place


def test_a_reference_to_a_subject_that_was_deleted_for_good_is_shown() -> None:
    references = (SchemaReference("there", "a", 1), SchemaReference("gone", "b", 1))
    definition = SchemaDefinition(2, "x", references=references)
    registry = ArchivedRegistry(origin="topic", definitions=(definition,), versions=(SubjectVersion("a", 1, 1),))
    rows = reference_rows(registry, definition)
    assert [(row.name, row.id) for row in rows] == [("there", 1), ("gone", -1)]


@pytest.mark.parametrize(
    ("subjects", "found"),
    (
        ((), [(True, ())]),
        ((":.other:t-key",), [(False, (".other",))]),
        ((":.other:x", ":.third:x"), [(False, (".other", ".third"))]),
    ),
)
def test_an_id_that_only_another_context_has(
    subjects: tuple[str, ...], found: list[tuple[bool, tuple[str, ...]]]
) -> None:
    """The topic has no subject in that context: nobody knows."""
    contexts = [subject[1:].partition(":")[0] for subject in subjects]
    registry = ArchivedRegistry(
        origin="topic",
        definitions=tuple(SchemaDefinition(7, "x", context=context) for context in contexts),
        versions=tuple(SubjectVersion(subject, 1, 7) for subject in subjects),
    )
    counts = {"records": 9, "fitting": 9, "known": 0, "eight_bytes": 0}
    use = SideUse(topic="t", side="value", unknown=(UnknownId(7, 9, 0, 3),), **counts)
    assert [(row.certain, row.contexts) for row in missing_ids(use, registry)] == found


def test_follow_leaves_a_registry_of_the_configuration_out_and_refuses_a_typed_one() -> None:
    registry = settings_of("http://registry:8081")
    assert left_out_registry(None, typed=True) == ""
    assert left_out_registry(registry, typed=False).startswith("--follow archives no schema registry")
    with pytest.raises(UsageError, match="--follow archives no schema registry"):
        left_out_registry(registry, typed=True)


def _schema_record(subject: str, version: int, number: int, text: str) -> tuple[bytes, bytes]:
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    return json.dumps(key).encode(), json.dumps({**key, "id": number, "schema": text}).encode()


def test_an_id_is_shown_in_each_context(tmp_path: Path) -> None:
    source = CompactedSource(new_place(tmp_path / "repo"), topic="_schemas")
    source.write(
        [
            _schema_record("orders-value", 1, 1, '"long"'),
            _schema_record(":.east:orders-value", 1, 1, '"string"'),
            _schema_record(":.east:pay-value", 1, 2, '"int"'),
            _schema_record(":.west:pay-value", 1, 2, '"double"'),
        ]
    )
    source.back_up()
    commands = Commands(f"file://{tmp_path / 'repo'}", tmp_path)
    show = ("kafka", "schemas", "show", "latest")
    usual = commands.json(*show, "1")
    assert (usual["text"], usual["context"], usual["other_contexts"]) == ('"long"', ".", [".east"])
    assert "also in  .east: --context" in commands.say(*show, "1").out
    east = commands.json(*show, "1", "--context", ".east")
    assert (east["text"], east["context"], east["other_contexts"]) == ('"string"', ".east", ["."])
    assert [u["subject"] for u in east["used_by"]] == [":.east:orders-value"]
    assert "context  .east" in commands.say(*show, "1", "--context", ".east").out
    assert "--context: .east, .west" in commands.error(*show, "2", code=40)
    assert commands.json(*show, "2", "--context", ".west")["text"] == '"double"'
    assert "--context: .east, .west" in commands.error(*show, "2", "--context", "west", code=40)
    assert "4 schemas" in commands.say("kafka", "schemas", "list").out
