"""Torn transactions in generated logs, against what the generator knows of every transaction."""

import struct
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.kafka.batches import CONTROL, TRANSACTIONAL, walk
from logkeep.formats.kafka.transaction_scan import RestoreCut, TransactionScan
from logkeep.formats.kafka.transactions import ABORT, COMMIT, Settling
from logkeep.kafka.restore.plan.torn_transactions import CLEAR_MS, TearReport, find_torn
from logkeep.model.segments import Collection, LogName
from tests.property.untimed import many
from tests.support.kafka.slow_records import Slow, batch_of

LOGS = tuple(LogName(Collection.TOPICS, "t", "0" * 32, p) for p in range(3))


@dataclass(frozen=True)
class Transaction:
    producer: int
    logs: frozenset[int]
    commit: bool
    pause_ms: int
    delays: tuple[int, int, int]
    """How much later each log's marker is, by its broker's clock."""


@dataclass
class Written:
    """The bytes of three logs, and the marker of each transaction in each of them."""

    data: list[bytes] = field(default_factory=lambda: [b""] * len(LOGS))
    ends: list[int] = field(default_factory=lambda: [0] * len(LOGS))
    parts: list[dict[int, tuple[int, int]]] = field(default_factory=list)
    """By transaction and log: first offset and offset of the marker."""

    def add(self, log: int, records: int, **fields: int) -> int:
        base = self.ends[log]
        self.data[log] += batch_of(base, [Slow(i) for i in range(records)], None, attributes=TRANSACTIONAL, **fields)
        self.ends[log] += records
        return base

    def end(self, log: int, kind: int, time_ms: int, **fields: int) -> int:
        base = self.ends[log]
        record = Slow(0, 0, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 7))
        self.data[log] += batch_of(
            base,
            [record],
            None,
            attributes=TRANSACTIONAL | CONTROL,
            base_time_ms=time_ms,
            max_time_ms=time_ms,
            **fields,
        )
        self.ends[log] += 1
        return base


_transactions = st.lists(
    st.builds(
        Transaction,
        st.integers(0, 1),
        st.frozensets(st.integers(0, 2), min_size=1),
        st.sampled_from((True, True, True, False)),
        st.sampled_from((0, 1, 20, 70, 200, 900, 1_500)),
        st.tuples(*[st.integers(0, CLEAR_MS - 1)] * 3),
    ),
    min_size=1,
    max_size=14,
)


def _write(transactions: list[Transaction], *, new: bool) -> Written:
    """`new`: each transaction of a producer has an epoch of its own, and its marker has the next one."""
    made, now, epochs = Written(), 1_000_000, dict[int, int]()
    for each in transactions:
        epoch = epochs.get(each.producer, 0)
        who = {"producer": each.producer}
        firsts = {log: made.add(log, 2, producer_epoch=epoch, **who) for log in sorted(each.logs)}
        if new:
            epochs[each.producer] = epoch + 1
        kind, epoch = COMMIT if each.commit else ABORT, epochs.get(each.producer, 0)
        marks = {log: made.end(log, kind, now + each.delays[log], producer_epoch=epoch, **who) for log in firsts}
        made.parts.append({log: (firsts[log], marks[log]) for log in firsts})
        now += each.pause_ms
    return made


def _compared(made: Written, cuts: tuple[int, ...], together: int) -> TearReport:
    found = {}
    for log, data, cut in zip(LOGS, made.data, cuts, strict=True):
        scan, batches = TransactionScan(RestoreCut(cut), (0, 1)), walk(data).batches
        for at in range(0, len(batches), together):
            scan.take(data, batches[at : at + together])
        found[log] = scan.rows()
    return find_torn(found)


def _torn(made: Written, transactions: list[Transaction], cuts: tuple[int, ...]) -> list[int]:
    """The committed transactions that are restored in one log and missing in another."""
    return [
        number
        for number, parts in enumerate(made.parts)
        if transactions[number].commit and len({mark < cuts[log] for log, (_, mark) in parts.items()}) == 2
    ]


def _seen(made: Written, report: TearReport, cuts: tuple[int, ...], number: int) -> set[bool]:
    """Whether a transaction is visible in its logs, without what is left out."""
    shown = set()
    for log, (first, _) in made.parts[number].items():
        batches = walk(made.data[log]).batches
        inside = batches[: int((batches.base_offsets < cuts[log]).sum())]
        settling = Settling()
        settling.take(made.data[log], inside)
        settled = settling.settled().without(report.ranges.get(LOGS[log], ()))
        shown.add(first in inside.base_offsets[settled.visible(inside)].tolist())
    return shown


_cuts = st.tuples(*[st.integers(0, 45)] * 3)


@many
@given(_transactions, _cuts, st.integers(1, 5))
def test_producer_and_epoch_identify_what_is_torn(
    transactions: list[Transaction], cuts: tuple[int, ...], n: int
) -> None:
    made = _write(transactions, new=True)
    report = _compared(made, cuts, n)
    torn = _torn(made, transactions, cuts)
    wanted: dict[int, list[tuple[int, int, int]]] = {log: [] for log in range(len(LOGS))}
    for number in torn:
        for log, (first, mark) in made.parts[number].items():
            if mark < cuts[log]:
                wanted[log].append((first, mark, transactions[number].producer))
    found = {
        log: [(r.first_offset, r.last_offset, r.producer_id) for r in report.ranges.get(LOGS[log], ())]
        for log in wanted
    }
    assert found == wanted
    assert sum(each.transactions for each in report.torn) == len(torn)
    assert all(each.certain for each in report.torn)


@many
@given(_transactions, _cuts, st.integers(1, 5), st.booleans())
def test_nothing_is_half_there_without_what_is_left_out(
    transactions: list[Transaction], cuts: tuple[int, ...], n: int, new: bool
) -> None:
    """Nor is a torn one ever passed over; without epochs, more may be left out."""
    made = _write(transactions, new=new)
    report = _compared(made, cuts, n)
    left = {(LOGS.index(log), r.first_offset) for log, ranges in report.ranges.items() for r in ranges}
    for number in _torn(made, transactions, cuts):
        for log, (first, mark) in made.parts[number].items():
            assert mark >= cuts[log] or (log, first) in left
    for number, each in enumerate(transactions):
        assert len(_seen(made, report, cuts, number)) == 1 or not each.commit


def test_one_half_wholly_beyond_its_cut() -> None:
    one = Transaction(0, frozenset({0, 1}), commit=True, pause_ms=100, delays=(0, 0, 0))
    for new in (True, False):
        report = _compared(_write([one, one], new=new), (6, 3, 0), 2)
        assert [(t.producer_id, t.transactions, t.restored, t.missing, t.certain) for t in report.torn] == [
            (0, 1, ("t/0",), ("t/1",), True)
        ]
        assert [(r.first_offset, r.last_offset) for r in report.ranges[LOGS[0]]] == [(3, 5)]


def test_transactions_in_quick_succession_without_epochs_are_possibly_torn() -> None:
    one = Transaction(0, frozenset({0, 1}), commit=True, pause_ms=CLEAR_MS - 1, delays=(0, 0, 0))
    report = _compared(_write([one, one], new=False), (6, 3, 0), 2)
    assert [(t.restored, t.missing, t.certain) for t in report.torn] == [(("t/0", "t/1"), ("t/1",), False)]
    assert {log.partition: len(ranges) for log, ranges in report.ranges.items()} == {0: 2, 1: 1}


def test_a_marker_that_a_slow_broker_wrote_late_is_not_passed_over() -> None:
    one = Transaction(0, frozenset({0, 1}), commit=True, pause_ms=0, delays=(0, 30_000, 0))
    report = _compared(_write([one], new=False), (3, 0, 0), 2)
    assert [(t.restored, t.missing, t.certain) for t in report.torn] == [(("t/0",), ("t/1",), False)]


def test_a_log_with_both_shows_that_a_later_transaction_is_another_one() -> None:
    both = Transaction(0, frozenset({0, 1}), commit=True, pause_ms=2_000, delays=(0, 0, 0))
    one = Transaction(0, frozenset({1}), commit=True, pause_ms=0, delays=(0, 0, 0))
    assert _compared(_write([both, one], new=False), (3, 3, 0), 2) == TearReport()


def test_a_time_for_each_record_tears_a_transaction_in_one_log() -> None:
    made = Written()
    made.add(0, 1, producer=3, producer_epoch=0, base_time_ms=10, max_time_ms=10)
    made.add(0, 1, producer=3, producer_epoch=0, base_time_ms=30, max_time_ms=30)
    made.end(0, COMMIT, 40, producer=3, producer_epoch=1)
    for before, torn in ((20, 1), (5, 0), (31, 0)):
        scan = TransactionScan(RestoreCut(100, before), (3,))
        scan.take(made.data[0], walk(made.data[0]).batches)
        assert len(find_torn({LOGS[0]: scan.rows()}).torn) == torn


def test_with_open_ones_a_cut_tears_a_transaction_in_one_log() -> None:
    made = _write([Transaction(0, frozenset({0}), commit=True, pause_ms=0, delays=(0, 0, 0))], new=True)
    for cut, torn in ((1, 1), (2, 0), (0, 0)):
        scan = TransactionScan(RestoreCut(cut, unsettled=True), (0,))
        scan.take(made.data[0], walk(made.data[0]).batches)
        assert len(find_torn({LOGS[0]: scan.rows()}).torn) == torn


def test_only_what_is_close_to_the_cut_is_left_out_of_many_unclear_transactions() -> None:
    """A producer commits every 20 ms to two logs, always in one epoch; the last marker of one log is beyond its cut."""
    made, count = Written(), 1_000
    for number in range(count):
        for log in (0, 1):
            made.add(log, 1, producer=0, producer_epoch=0)
            made.end(log, COMMIT, 1_000_000 + 20 * number, producer=0, producer_epoch=0)
    found = {}
    for log, cut in ((0, made.ends[0]), (1, made.ends[1] - 1)):
        scan = TransactionScan(RestoreCut(cut), (0,))
        scan.take(made.data[log], walk(made.data[log]).batches)
        found[LOGS[log]] = scan.rows()
    report = find_torn(found)
    (torn,) = report.torn
    assert not torn.certain
    assert 1 <= torn.transactions <= 110
    assert count - 110 <= min(each.first_offset // 2 for each in report.ranges[LOGS[0]])
