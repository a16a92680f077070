"""What the commands about schemas decide without a server."""

import pytest

from logkeep.cli.verbs.kafka.backup import left_out_registry
from logkeep.cli.verbs.kafka.schemas import reference_rows
from logkeep.cli.verbs.kafka.schemas_check import missing_ids
from logkeep.errors import UsageError
from logkeep.kafka.registry.id_use import SideUse, UnknownId
from logkeep.kafka.registry.values import ArchivedRegistry, SchemaDefinition, SchemaReference, SubjectVersion
from tests.support.kafka.registry_steps import settings_of


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
        ((":.other:t-value",), []),
        ((":.other:t-key",), [(False, (".other",))]),
        ((":.other:x", ":.third:x"), [(False, (".other", ".third"))]),
    ),
)
def test_an_id_that_only_another_context_has(
    subjects: tuple[str, ...], found: list[tuple[bool, tuple[str, ...]]]
) -> None:
    """It is not missing if the topic has its subject in that context; otherwise nobody knows."""
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
