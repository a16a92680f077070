"""The registry that the records of `_schemas` describe."""

import json
from typing import Any

import pytest

from logkeep.kafka.registry.references import in_order
from logkeep.kafka.registry.schemas_topic import registry_of
from logkeep.kafka.registry.values import ArchivedRegistry, SchemaReference, SubjectSetting, SubjectVersion
from tests.support.kafka.registry_steps import karapace_records, karapace_registry

Row = tuple[dict[str, Any] | bytes | None, dict[str, Any] | bytes | None]


def _bytes(part: dict[str, Any] | bytes | None) -> bytes | None:
    return json.dumps(part).encode() if isinstance(part, dict) else part


def _read(*rows: Row) -> ArchivedRegistry:
    return registry_of((offset, _bytes(key), _bytes(value)) for offset, (key, value) in enumerate(rows))


def _schema(subject: str, version: int, number: int, **more: Any) -> Row:
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    return key, {"subject": subject, "version": version, "id": number, "schema": f'"s{number}"', **more}


def _gone(subject: str, version: int, value: bytes | None) -> Row:
    return {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}, value


def _deleted(subject: str, version: int) -> Row:
    return {"keytype": "DELETE_SUBJECT", "subject": subject, "magic": 0}, {"subject": subject, "version": version}


def test_the_topic_of_a_real_karapace() -> None:
    found = karapace_registry()
    assert found.versions == (
        SubjectVersion("orders-value", 1, 1),
        SubjectVersion("orders-value", 2, 2),
        SubjectVersion("pay-value", 1, 3, deleted=True),
        SubjectVersion("same-value", 1, 3),
    )
    assert [(d.id, d.type, d.erased) for d in found.definitions] == [
        (1, "AVRO", False),
        (2, "AVRO", False),
        (3, "AVRO", False),
        (4, "JSON", True),
    ]
    assert found.compatibility == (SubjectSetting("FULL", "orders-value"),)
    assert (found.highest_id, found.unreadable) == (4, 0)
    assert found.known_ids() == {1, 2, 3}


def test_every_prefix_of_the_topic_is_a_registry() -> None:
    """A backup may end anywhere."""
    ids = [len(registry_of(karapace_records()[:end]).known_ids()) for end in range(10)]
    assert ids == [0, 1, 2, 3, 3, 4, 4, 4, 4, 3]


@pytest.mark.parametrize("value", (None, b""))
def test_null_and_empty_take_a_version_away_and_keep_its_meaning(value: bytes | None) -> None:
    found = _read(_schema("a", 1, 7), _schema("a", 2, 8), _gone("a", 2, value))
    assert found.versions == (SubjectVersion("a", 1, 7),)
    erased = found.find(8)
    assert erased is not None
    assert erased.erased
    assert found.highest_id == 8


def test_a_deletion_covers_versions_up_to_its_own_and_later_ones_live() -> None:
    found = _read(_schema("a", 1, 1), _schema("a", 2, 2), _deleted("a", 2), _schema("a", 3, 3), _schema("b", 1, 4))
    assert [(v.subject, v.version, v.deleted) for v in found.versions] == [
        ("a", 1, True),
        ("a", 2, True),
        ("a", 3, False),
        ("b", 1, False),
    ]


def test_the_latest_record_of_a_version_counts() -> None:
    found = _read(_schema("a", 1, 1), _deleted("a", 1), _schema("a", 1, 1), _schema("b", 1, 2, deleted=True))
    assert [(v.subject, v.deleted) for v in found.versions] == [("a", False), ("b", True)]


def test_cleared_subjects_are_gone_for_good() -> None:
    key = {"keytype": "CLEAR_SUBJECT", "subject": "a", "magic": 0}
    found = _read(_schema("a", 1, 1), _deleted("a", 1), _schema("a", 2, 2), (key, {"subject": "a"}))
    assert found.versions == (SubjectVersion("a", 2, 2),)


def test_settings_are_set_and_taken_away() -> None:
    config, mode = {"keytype": "CONFIG", "subject": None}, {"keytype": "MODE", "subject": "a"}
    found = _read(
        (config, {"compatibilityLevel": "NONE"}),
        ({"keytype": "CONFIG", "subject": "a"}, {"compatibilityLevel": "FULL"}),
        ({"keytype": "CONFIG", "subject": "a"}, None),
        (mode, {"mode": "READONLY"}),
        ({"keytype": "NOOP", "magic": 0}, None),
    )
    assert found.compatibility == (SubjectSetting("NONE"),)
    assert found.modes == (SubjectSetting("READONLY", "a"),)
    assert found.unreadable == 0


def test_references_types_and_ids_of_contexts() -> None:
    reference = {"name": "n", "subject": "b", "version": 1}
    found = _read(
        _schema("b", 1, 1),
        _schema("a", 1, 2, schemaType="PROTOBUF", references=[reference], guid="g"),
        _schema(":.other:a", 1, 2),
    )
    one, other = found.find(2), found.find(2, ".other")
    assert one is not None
    assert other is not None
    assert (one.type, one.references, one.guid) == ("PROTOBUF", (SchemaReference("n", "b", 1),), "g")
    assert other.type == "AVRO"


def test_an_id_of_another_context_is_not_the_highest_of_the_usual_one() -> None:
    assert _read(_schema("b", 1, 7), _schema(":.other:a", 1, 500)).highest_id == 7


def test_an_id_in_a_record_means_the_usual_context_or_the_only_one_that_has_it() -> None:
    found = _read(
        _schema("b", 1, 1),
        _schema(":.other:a", 1, 1, schemaType="JSON"),
        _schema(":.other:a", 2, 2, schemaType="JSON"),
        _schema(":.other:a", 3, 3),
        _schema(":.third:a", 1, 3),
    )
    usual, only = found.find_anywhere(1), found.find_anywhere(2)
    assert usual is not None
    assert only is not None
    assert ((usual.context, usual.type), (only.context, only.type)) == (("", "AVRO"), (".other", "JSON"))
    assert found.find_anywhere(3) is None
    assert found.contexts_with(3) == (".other", ".third")
    assert found.contexts_with(1) == (".other",)


def test_an_id_in_a_record_means_the_schema_of_the_subject_in_its_own_context() -> None:
    """Both contexts have both ids; sales was registered in the other one, and stock in both."""
    found = _read(
        _schema("else-value", 1, 1),
        _schema("stock-value", 1, 2),
        _schema(":.other:sales-value", 1, 1, schemaType="JSON"),
        _schema(":.other:stock-value", 1, 1, schemaType="JSON"),
        _schema(":.other:more-value", 1, 2, schemaType="JSON"),
    )

    def context(number: int, subject: str) -> str:
        one = found.find_anywhere(number, subject)
        assert one is not None
        return one.context

    assert context(1, "sales-value") == ".other"
    assert context(2, "sales-value") == ".other", "no version of it has the id, but it is at home there"
    assert context(1, "sales-key") == ""
    assert (context(1, "stock-value"), context(2, "stock-value")) == (".other", "")
    assert found.contexts_of_subjects() == {
        "sales-value": (".other",), "stock-value": ("", ".other"), "more-value": (".other",)
    }  # fmt: skip


def test_a_reference_without_a_context_means_that_of_the_schema_that_refers() -> None:
    reference = {"name": "n", "subject": "b", "version": 1}
    found = _read(
        _schema("b", 1, 1),
        _schema(":.other:b", 1, 5, schemaType="JSON"),
        _schema(":.other:a", 1, 6, references=[reference]),
        _schema(":.third:a", 1, 7, references=[reference]),
    )
    for context, number, referred in ((".other", 6, (".other", 5)), (".third", 7, ("", 1))):
        one = found.find(number, context)
        assert one is not None
        assert [(d.context, d.id) for d in in_order(found, [one])] == [referred, (context, number)]


@pytest.mark.parametrize(
    "more", ({"ruleSet": {"domainRules": [{"name": "r"}]}}, {"metadata": {"properties": {"a": "b"}}})
)
def test_a_version_with_rules_or_metadata_is_remembered(more: dict[str, Any]) -> None:
    found = _read(_schema("a", 1, 1, **more), _schema("b", 1, 2, ruleSet=None, metadata=None))
    assert [v.contract for v in found.versions] == [True, False]
    assert found.unreadable == 0


def test_fields_of_newer_registries_are_ignored() -> None:
    reference = {"name": "n", "subject": "b", "version": 1, "new": {}}
    found = _read(_schema("a", 1, 1, references=[reference], ts=1, new=[]))
    assert found.unreadable == 0
    assert found.definitions[0].references == (SchemaReference("n", "b", 1),)


@pytest.mark.parametrize(
    "row",
    (
        (None, b"{}"),
        (b"\xff", b"{}"),
        (b"[" * 100_000, b"{}"),
        (b'{"keytype":"SOMETHING_NEW"}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"a","version":1}', b'{"id":"one","schema":"x"}'),
        (b'{"keytype":"SCHEMA","subject":"a"}', b'{"id":1,"schema":"x"}'),
        (b'{"keytype":"SCHEMA","subject":"a","version":1}', b'{"id":-1,"schema":"x"}'),
        (b'{"keytype":"CONFIG"}', b"<html>"),
    ),
)
def test_a_record_that_no_rule_explains_is_counted_and_hides_nothing(row: Row) -> None:
    found = _read(_schema("a", 1, 1), row, _schema("b", 1, 2))
    assert (found.unreadable, found.first_unreadable) == (1, 1)
    assert found.subjects() == ("a", "b")
