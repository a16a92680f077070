"""Events as Avro binary: bytes by hand, and batches that the product's own reader accepts."""

from logkeep.formats.kafka.batches import WalkEnd, first_broken, walk
from logkeep.formats.kafka.internal_topics.coordination_events import (
    CoordinationEvent,
    CoordinationKind,
    event_batch,
    zigzag,
)
from logkeep.formats.kafka.plain_records import records_of

EVENT = CoordinationEvent(CoordinationKind.ACTIVATE, "a", "accounts", 1, 300, 1_700_000_000_000)


def test_numbers_as_avro_writes_them() -> None:
    known = {0: b"\0", -1: b"\1", 1: b"\2", 63: b"\x7e", 64: b"\x80\1", -64: b"\x7f", 300: b"\xd8\4"}
    assert {number: zigzag(number) for number in known} == known
    assert zigzag(2**63 - 1) == b"\xfe" + b"\xff" * 8 + b"\1"
    assert zigzag(-(2**63)) == b"\xff" * 9 + b"\1"


def test_an_event_is_the_fields_in_the_order_of_the_schema() -> None:
    assert EVENT.encode() == b"\0" + b"\2a" + b"\x10accounts" + b"\2" + b"\xd8\4" + zigzag(1_700_000_000_000)
    assert EVENT._replace(kind=CoordinationKind.PASSIVATE).encode()[:1] == b"\2"


def test_a_batch_of_events_is_a_whole_batch() -> None:
    events = [EVENT._replace(offset=offset, time_ms=EVENT.time_ms + offset) for offset in range(200)]
    batch = event_batch(events)
    walked = walk(batch)
    assert (walked.stop, len(walked.batches)) == (WalkEnd.END, 1)
    assert first_broken(batch, walked.batches) is None
    found = list(records_of(batch, 0, 0, 200))
    assert [(r.key, r.value) for r in found] == [(b"accounts", event.encode()) for event in events]
