"""Bytes that Apache's own classes wrote for every record type of Kafka's own topics, and the fields that they wrote."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logkeep.formats.kafka.internal_topics.coordinator_records import DECODED_TOPICS, RECORD_TYPES, decode_record

GOLDEN: list[dict[str, Any]] = json.loads((Path(__file__).parent / "kafka" / "coordinator-records.json").read_text())


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: f"{row['topic']}-{row['type']}-v{row['version']}")
def test_every_type_and_version(row: dict[str, Any]) -> None:
    found = decode_record(row["topic"], bytes.fromhex(row["key"]), bytes.fromhex(row["value"]))
    assert (found.unknown, found.type, found.version) == ("", row["type"], row["version"])
    assert found.key == row["key_fields"]
    assert found.value == row["value_fields"]
    erased = decode_record(row["topic"], bytes.fromhex(row["key"]), None)
    assert (erased.key, erased.value, erased.version, erased.unknown) == (row["key_fields"], None, None, "")


def test_no_type_and_no_version_is_without_golden_bytes() -> None:
    known = {(t, n, v) for t, types in RECORD_TYPES.items() for n, each in types.items() for v in each.value.versions}
    # Type 0 is the first form of type 1, and was written in version 0 only.
    written = {(r["topic"], r["type"], r["version"]) for r in GOLDEN} | {(DECODED_TOPICS[0], 0, v) for v in range(1, 5)}
    assert known == written


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(GOLDEN), st.data())
def test_damaged_and_later_records_are_kept_and_never_an_error(row: dict[str, Any], data: st.DataObject) -> None:
    key, value = bytes.fromhex(row["key"]), bytes.fromhex(row["value"])
    cut = data.draw(st.integers(0, len(value) - 1))
    assert decode_record(row["topic"], key, value[:cut]).unknown
    assert decode_record(row["topic"], key[: data.draw(st.integers(0, len(key) - 1))], value).unknown
    later = decode_record(row["topic"], key, b"\x00\x63" + value[2:])
    assert (later.version, later.key, later.value) == (99, row["key_fields"], None)
    assert "version 99" in later.unknown
    other = decode_record(row["topic"], b"\x00\x63" + key[2:], value)
    assert (other.type, other.unknown) == (99, "type 99")
    decode_record(row["topic"], data.draw(st.binary(max_size=20)), data.draw(st.binary(max_size=40)))


def test_a_member_as_a_broker_wrote_it() -> None:
    """With a tag that holds a null struct."""
    key = bytes.fromhex("0005000161000162")
    value = bytes.fromhex("000000000872646b61666b610b2f3132372e302e302e310203616201000493e00001000100")
    found = decode_record("__consumer_offsets", key, value)
    assert (found.unknown, found.value and found.value["classicMemberMetadata"]) == ("", None)
    assert found.value is not None
    assert (found.value["clientId"], found.value["subscribedTopicNames"]) == ("rdkafka", ["ab"])
