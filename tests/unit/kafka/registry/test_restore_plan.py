"""The order in which schemas are registered, and whether a live registry equals an archived one."""

import msgspec
import pytest

from logkeep.errors import Damaged, UsageError
from logkeep.kafka.registry.references import in_order
from logkeep.kafka.registry.restore_plan import (
    RESERVED,
    deletions,
    differences,
    final_mode,
    refuse_contracts,
    registrations,
    reserved_id,
    same_text,
)
from logkeep.kafka.registry.values import (
    ArchivedRegistry,
    SchemaDefinition,
    SchemaReference,
    SubjectSetting,
    SubjectVersion,
)
from tests.support.kafka.registry_steps import karapace_registry


def _registry(uses: dict[int, tuple[int, ...]], **more: object) -> ArchivedRegistry:
    """Schema n is version 1 of subject `sn`, and refers to some others."""
    return ArchivedRegistry(
        origin="topic",
        definitions=tuple(
            SchemaDefinition(n, f'"{n}"', references=tuple(SchemaReference(f"r{u}", f"s{u}", 1) for u in used))
            for n, used in uses.items()
        ),
        versions=tuple(SubjectVersion(f"s{n}", 1, n) for n in uses),
        **more,  # type: ignore[arg-type]  # fields of the registry
    )


def _with_version(registry: ArchivedRegistry, at: int, **changes: object) -> ArchivedRegistry:
    versions = list(registry.versions)
    versions[at] = msgspec.structs.replace(versions[at], **changes)
    return msgspec.structs.replace(registry, versions=tuple(versions))


def test_what_is_referred_to_comes_first() -> None:
    found = [v.id for v, _ in registrations(_registry({1: (3,), 2: (), 3: (4,), 4: ()}))]
    assert found.index(4) < found.index(3) < found.index(1)
    assert sorted(found) == [1, 2, 3, 4]


@pytest.mark.parametrize("uses", ({1: (2,), 2: (1,)}, {1: (1,)}, {1: (2,), 2: (3,), 3: (1,)}))
def test_circular_references_are_damage(uses: dict[int, tuple[int, ...]]) -> None:
    with pytest.raises(Damaged, match="circular"):
        registrations(_registry(uses))


def test_a_very_long_chain_of_references_is_refused_and_a_wide_one_is_not() -> None:
    with pytest.raises(Damaged, match="more than 200 deep"):
        registrations(_registry({n: (n + 1,) for n in range(1, 5000)} | {5000: ()}))
    wide = _registry(dict.fromkeys(range(1, 2000), (5000,)) | {5000: ()})
    assert registrations(wide)[0][0].id == 5000


def test_a_missing_reference_is_named() -> None:
    registry = _registry({1: (9,)})
    with pytest.raises(Damaged, match="version 1 of s9, which is not archived"):
        in_order(registry, registry.definitions)


def test_a_version_without_its_schema_is_damage() -> None:
    with pytest.raises(Damaged, match="its schema 8 is not archived"):
        registrations(_with_version(_registry({1: ()}), 0, id=8))


def test_deleted_subjects_are_deleted_whole_and_others_version_by_version() -> None:
    registry = ArchivedRegistry(
        origin="topic",
        versions=(
            SubjectVersion("a", 1, 1, deleted=True),
            SubjectVersion("a", 2, 2, deleted=True),
            SubjectVersion("b", 1, 3, deleted=True),
            SubjectVersion("b", 2, 4),
        ),
    )
    assert deletions(registry) == (("a", None), ("b", 1))


def test_the_highest_id_is_reserved_if_its_schema_is_gone() -> None:
    assert reserved_id(karapace_registry()) == 4
    assert reserved_id(_registry({1: (), 2: ()}, highest_id=2)) is None


def test_a_registry_in_import_mode_is_restored_writable() -> None:
    assert final_mode(_registry({}, modes=(SubjectSetting("IMPORT"),))).value == "READWRITE"
    assert final_mode(_registry({}, modes=(SubjectSetting("READONLY"),))).value == "READONLY"


def test_every_difference_is_named() -> None:
    archived = karapace_registry()
    assert differences(archived, archived) == ()
    versions = archived.versions
    assert differences(archived, _with_version(archived, 1, id=7)) == (
        "version 2 of orders-value has the id 7 instead of 2",
    )
    assert differences(archived, _with_version(archived, 2, deleted=False)) == (
        "version 1 of pay-value is not deleted",
    )
    without = msgspec.structs.replace(archived, versions=versions[1:])
    assert differences(archived, without) == ("version 1 of orders-value is missing",)
    assert differences(without, archived) == ("version 1 of orders-value is not archived",)
    more = msgspec.structs.replace(archived, versions=(*versions, SubjectVersion(RESERVED, 1, 4, deleted=True)))
    assert differences(archived, more) == ()
    unset = msgspec.structs.replace(archived, compatibility=())
    assert differences(archived, unset) == ("the compatibility of orders-value is none instead of FULL",)


@pytest.mark.parametrize(
    ("change", "what"),
    (
        ({"text": '{"type":"bytes"}'}, "another schema under the id 1"),
        ({"type": "JSON"}, "of type JSON instead of AVRO"),
        ({"references": (SchemaReference("n", "s", 1),)}, "other references"),
    ),
)
def test_the_meaning_of_an_id_is_compared(change: dict[str, object], what: str) -> None:
    archived = karapace_registry()
    first, *others = archived.definitions
    live = msgspec.structs.replace(archived, definitions=(msgspec.structs.replace(first, **change), *others))
    (found,) = differences(archived, live)
    assert what in found


def test_rules_and_metadata_are_missed_and_not_registered_without() -> None:
    plain = karapace_registry()
    archived = _with_version(plain, 1, contract=True)
    assert differences(archived, archived) == ()
    assert differences(archived, plain) == ("version 2 of orders-value has no rules and no metadata any more",)
    refuse_contracts(plain)
    with pytest.raises(UsageError, match="version 2 of orders-value: rules or metadata would be lost") as refused:
        refuse_contracts(archived)
    assert "--way topic" in refused.value.remedy


def test_schemas_are_compared_as_json_where_they_are_json() -> None:
    assert same_text('{"a":1,"b":[2]}', '{ "b": [2], "a": 1 }')
    assert not same_text('{"a":1}', '{"a":true}')
    assert not same_text('{"a":1}', '{"a":1.0}')
    assert same_text("message A {\n}", "message A { }")
    assert not same_text("message A { }", "message B { }")
