"""Records of a later Kafka, share groups, and what the command prints of both."""

import struct
from uuid import UUID

import msgspec

from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.kafka.groups_report import CompleteInterval, GroupsReport, PositionRow, groups_text
from logkeep.kafka.group_history.history_task import read_history, read_raw
from logkeep.kafka.group_history.positions_task import read_positions_at
from logkeep.kafka.group_history.values import GroupLogUnit
from tests.support.kafka.offsets_log import LOG, place, position_key, position_value, stored, text
from tests.support.kafka.slow_records import Slow, batch_of

_TOPIC = UUID("00112233-4455-6677-8899-aabbccddeeff")
_SHARE_LOG = msgspec.structs.replace(LOG, name="__share_group_state")


def _unit(*records: tuple[bytes, bytes | None], share: bool = False, most_rows: int = 100) -> GroupLogUnit:
    where = place()
    batches = [
        (at, batch_of(at, [Slow(0, 0, key, value)], base_time_ms=100 + at, max_time_ms=100 + at))
        for at, (key, value) in enumerate(records)
    ]
    log = _SHARE_LOG if share else LOG
    segments = tuple(stored(where, batches, len(records), log=log))
    return GroupLogUnit(where, log, 0, len(records), segments, transactional=False, most_rows=most_rows)


_LATER = (
    (position_key("a"), position_value(1)),
    (b"\x00\x63" + text("a"), b"\x00\x00"),
    (position_key("b"), position_value(1)),
    (position_key("b"), b"\x00\x09" + position_value(2)[2:]),
    (b"\x07", b""),
)


def test_what_is_not_known_is_counted_and_shown_and_hides_what_it_replaced() -> None:
    found = read_positions_at(_unit(*_LATER), lambda _: None)
    assert [(p.group, p.offset) for p in found.positions] == [("a", 1)], "where b is, is not known"
    counted = {"type 99": 1, "version 9 of type 1": 1, "no type": 1}
    assert found.unknown == counted
    history = read_history(_unit(*_LATER), lambda _: None)
    assert [(c.group, c.offset, c.ending) for c in history.commits] == [
        ("a", 1, "current"),
        ("b", 1, "replaced"),
        ("b", None, "current"),
    ]
    raw = read_raw(_unit(*_LATER), lambda _: None)
    assert raw.unknown == counted
    assert [(r.type, r.key_hex) for r in raw.records if r.unknown] == [
        (99, "0063000161"),
        (1, position_key("b").hex()),
        (-1, "07"),
    ]


def test_more_rows_than_are_wanted_are_only_counted() -> None:
    unit = _unit(*((position_key("a"), position_value(n)) for n in range(5)), most_rows=4)
    assert (read_history(unit, lambda _: None).total, read_history(unit, lambda _: None).commits) == (5, ())
    assert (read_raw(unit, lambda _: None).total, read_raw(unit, lambda _: None).records) == (5, ())


def _share_key(kind: int) -> bytes:
    return struct.pack(">h", kind) + text("pickers") + _TOPIC.bytes + struct.pack(">i", 3)


def _snapshot(start: int) -> bytes:
    return struct.pack(">hiiiqqq", 0, 1, 2, 3, start, 7, 8) + b"\x01\x00"


def _update(start: int) -> bytes:
    return struct.pack(">hiiq", 0, 1, 3, start) + b"\x01\x00"


def test_the_start_of_a_share_group_is_that_of_its_last_record_that_names_one() -> None:
    records: list[tuple[bytes, bytes | None]] = [(_share_key(0), _snapshot(-1))]
    for key, value, expected in (
        (_share_key(0), _snapshot(4), [4]),
        (_share_key(1), _update(-1), [4]),
        (_share_key(1), _update(6), [6]),
        (_share_key(1), _update(-1), [6]),
        (_share_key(0), None, []),
    ):
        records.append((key, value))
        found = read_positions_at(_unit(*records, share=True), lambda _: None)
        assert [p.offset for p in found.positions if p.erased_ms is None] == expected
    (last,) = found.positions
    assert (last.group, last.topic_id, last.partition, last.share) == ("pickers", _TOPIC.hex, 3, True)
    endings = [(c.offset, c.ending) for c in read_history(_unit(*records, share=True), lambda _: None).commits]
    assert endings == [(-1, "replaced"), (4, "replaced"), (6, "erased")]


def test_the_topics_of_share_groups_have_names() -> None:
    named = b"\x00\x00\x01" + b"\x02" + _TOPIC.bytes + b"\x07orders" + b"\x02\x00\x00\x00\x00" + b"\x00" + b"\x01\x00"
    found = read_positions_at(_unit((b"\x00\x0f" + text("pickers"), named)), lambda _: None)
    assert found.topics == {_TOPIC.hex: "orders"}


def test_an_answer_that_is_not_complete_says_at_least() -> None:
    row = PositionRow(
        group="a", topic="t", partition=0, offset=5, leader_epoch=0, metadata="", committed_ms=1000, erased_ms=None,
        sure=False,
    )  # fmt: skip
    interval = CompleteInterval(
        complete=False, from_ms=None, to_ms=None, until_ms=9_000_000, nearest_ms=(60_000, 120_000)
    )
    report = GroupsReport(
        id=1, source="prod", erased=0, positions=(row,), all=False, at_ms=90_000, complete=interval,
        unknown={"type 99": 3},
    )  # fmt: skip
    shown = groups_text(report, TerminalStyle(width=200))
    assert "a later one may be missing" in shown
    assert "records that this release does not know: type 99: 3; --raw shows them" in shown
    assert "AT LEAST  compaction removed records" in shown
    assert "complete at 1970-01-01 00:01:00 +0000 and 1970-01-01 00:02:00 +0000" in shown
    later = groups_text(msgspec.structs.replace(report, at_ms=9_000_001), TerminalStyle(width=200))
    assert "AT LEAST  the backup ends at 1970-01-01 02:30:00 +0000" in later
