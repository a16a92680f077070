"""Which ranges a scan of a backup reads: buried, folded and trimmed logs as a restore reads them."""

import pickle
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from logkeep.errors import UnknownBackup, UsageError
from logkeep.kafka.record.backup_view import view_backup
from logkeep.kafka.scan.open_backup import open_backup
from logkeep.kafka.scan.plan import ScanSelection, plan_scan, split
from logkeep.kafka.scan.read import read_range
from logkeep.kafka.scan.values import ScanCounters, ScanIsolation, ScanRange
from logkeep.model.ranges import Range
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.backups.holds import reader_holds
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.format import StoreFacts
from logkeep.store.memory import MemoryStore
from tests.support.kafka.archived_tables import archived_table
from tests.support.kafka.compacted_backups import CompactedSource
from tests.support.kafka.whole_backups import new_place


@pytest.fixture
def source(tmp_path: Path) -> CompactedSource:
    """Three backups of two partitions; the third has two offsets buried."""
    made = CompactedSource(new_place(tmp_path / "repo"), partitions=2)
    for number in range(3):
        for partition in (0, 1):
            made.write([(b"k%d" % key, b"%d" % number) for key in range(4)], partition)
            made.transaction([(b"t", b"aborted")], 7, False, partition)
            made.transaction([(b"t", b"%d" % number)], 8, True, partition)
        made.back_up(bury_offsets=[0, 9] if number == 2 else ())
    return made


def seen(place: SourceRef, number: int, wanted: ScanSelection) -> dict[int, list[tuple[int, bytes, bytes]]]:
    """By partition."""
    entry = read_chain(place).completed[number]
    found: dict[int, list[tuple[int, bytes, bytes]]] = {}
    for each in plan_scan(view_backup(place, entry), wanted):
        rows = [row for batch in read_range(each) for row in batch.to_pylist()]
        found[each.log.partition] = [(row["offset"], row["key"], row["value"]) for row in rows]
    return found


def test_each_backup_has_its_own_records(source: CompactedSource) -> None:
    topic = ScanSelection(topics=("state",))
    first = seen(source.place, 0, topic)
    assert first == {p: [*((k, b"k%d" % k, b"0") for k in range(4)), (6, b"t", b"0")] for p in (0, 1)}
    third = seen(source.place, 2, topic)
    assert [offset for offset, _, _ in third[0]][:4] == [1, 2, 3, 6], (
        "offset 0 is buried, 4 aborted, 5 and 7 are markers"
    )
    assert 9 not in {offset for offset, _, _ in third[0]}
    everything = seen(source.place, 0, in_full(topic))
    assert [o for o, _, _ in everything[0]] == [0, 1, 2, 3, 4, 6]


def in_full(wanted: ScanSelection) -> ScanSelection:
    return ScanSelection(topics=wanted.topics, isolation=ScanIsolation.ALL)


def test_a_folded_log_has_what_its_backups_restore(source: CompactedSource) -> None:
    before = [archived_table(source.place, entry) for entry in read_chain(source.place).completed]
    source.fold()
    for number, table in enumerate(before):
        latest: dict[bytes, bytes] = {}
        for rows in seen(source.place, number, ScanSelection(topics=("state",))).values():
            latest |= {key: value for _, key, value in rows}
        assert latest == table


def test_offsets_and_partitions_narrow_what_is_planned(source: CompactedSource) -> None:
    some = ScanSelection(topics=("state",), partitions=frozenset({1}), offsets={("state", 1): Range(2, 7)})
    assert [o for o, _, _ in seen(source.place, 1, some)[1]] == [2, 3, 6]
    entry = read_chain(source.place).completed[1]
    (only,) = plan_scan(view_backup(source.place, entry), some)
    copied = pickle.loads(pickle.dumps(only))  # noqa: S301 - our own bytes
    assert list(read_range(copied)) == list(read_range(only))
    beyond = ScanSelection(topics=("state",), offsets={("state", p): Range(900, 901) for p in (0, 1)})
    assert seen(source.place, 1, beyond) == {}


def test_names_that_the_backup_does_not_have_are_refused_with_the_nearest(source: CompactedSource) -> None:
    with pytest.raises(UsageError, match="no topic 'stat' in the backup") as error:
        seen(source.place, 0, ScanSelection(topics=("stat",)))
    assert error.value.remedy == "the nearest are: state"
    with pytest.raises(UsageError, match="no partition 7"):
        seen(source.place, 0, ScanSelection(topics=("state",), partitions=frozenset({0, 7})))
    assert seen(source.place, 0, ScanSelection(patterns=("x.*",))) == {}


def test_an_open_backup_is_held_and_found_by_id_time_or_as_the_latest(source: CompactedSource) -> None:
    entries = read_chain(source.place).completed
    for which, expected in (("latest", 2), (str(entries[0].id), 0), (datetime.now(UTC), 2)):
        with open_backup(source.place, which, "show", utc_now, random_token) as view:
            assert view.entry.id == entries[expected].id
            assert [hold.backup for hold in reader_holds(source.place)] == [view.entry.id]
        assert not reader_holds(source.place)
    early = datetime.fromisoformat(entries[0].committed)
    with open_backup(source.place, early, "show", utc_now, random_token) as view:
        assert view.entry.id == entries[0].id
    with (
        pytest.raises(UnknownBackup, match="no backup was complete at 2001"),
        open_backup(source.place, datetime(2001, 1, 1, tzinfo=UTC), "show", utc_now, random_token),
    ):
        pass


def _many_segments(count: int) -> SourceRef:
    """A segment for each backup. Producer 5 begins in the first and commits in the last; 6 begins and aborts so."""
    facts = StoreFacts(put_new=True, replace=True, durable=True)
    made = CompactedSource(create_repository(MemoryStore(), facts, utc_now(), random_token).place("prod"))
    made.transaction([(b"kept", b"1")], 5, None)
    made.transaction([(b"gone", b"2")], 6, None)
    for number in range(count):
        made.transaction([(b"k%d" % number, b"v")], 7, number % 2 == 0)
        made.back_up()
    made.end(5, True)
    made.end(6, False)
    made.back_up()
    return made.place


def _units(place: SourceRef, parts: int) -> tuple[ScanRange, ...]:
    view = view_backup(place, read_chain(place).completed[-1])
    return split(plan_scan(view, ScanSelection(topics=("state",))), parts)


def test_the_units_of_a_transactional_log_grow_with_its_segments_and_not_faster(source: CompactedSource) -> None:
    first = plan_scan(view_backup(source.place, read_chain(source.place).completed[0]), ScanSelection())[0]
    carried = {}
    for count in (50, 200):
        segments = [msgspec.structs.replace(first.segments[0], start=10 * n, end=10 * n + 10) for n in range(count)]
        end = segments[-1].end
        whole = msgspec.structs.replace(first, start=0, end=end, settled_to=end, segments=tuple(segments))
        units = split([whole], count)
        assert len(units) == count
        carried[count] = len(pickle.dumps(units))
    assert carried[200] <= 5 * carried[50]


def test_a_transaction_that_ends_many_segments_later_is_settled() -> None:
    requests: dict[bytes, int] = {}
    for unit in _units(_many_segments(6), 6):
        counters = ScanCounters()
        keys = [key.as_py() for batch in read_range(unit, counters) for key in batch["key"]]
        requests |= dict.fromkeys(keys, counters.requests)
    assert list(requests) == [b"kept", *(b"k%d" % n for n in range(0, 6, 2))]
    assert requests[b"k2"] <= 4, "its transaction ends in its own segment: no manifest is read"
    assert requests[b"kept"] > 4
