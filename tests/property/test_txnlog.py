"""Whatever bytes a log has: the scan sees what a slow reader sees, in chunks of any size, from memory and from disk."""

import io
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given
from hypothesis import strategies as st

from logkeep.errors import Damaged
from logkeep.formats.zookeeper import txnlog
from logkeep.formats.zookeeper.txnlog import DamageKind, Padding
from tests.support.zookeeper import strategies as drawn
from tests.support.zookeeper.encoding import LOG_HEADER, body, log_of, record, set_data
from tests.support.zookeeper.slow_log import SlowRecord, ends_well, good_records, next_good, record_at

STEPS = st.sampled_from([1] * 12 + [0, -1, 2, (1 << 32), (5 << 32)])
CHUNKS = st.sampled_from([64, 100, 333, 4096, 1 << 20])


@st.composite
def zxid_runs(draw: st.DrawFn) -> list[int]:
    zxid, found = draw(st.sampled_from([1, 0x100000001, 0x5_0000_0FFF, 1 << 62])), []
    for step in draw(st.lists(STEPS, max_size=12)):
        found.append(zxid)
        zxid = zxid + step if abs(step) < 3 else ((zxid + step) >> 32 << 32) + 1
    return found


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Most of them with something wrong."""
    transactions = [draw(drawn.transactions(st.just(zxid))) for zxid in draw(zxid_runs())]
    log = bytearray(log_of((record(body(each)) for each in transactions), draw(st.sampled_from([0, 5, 12, 500]))))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(log) - 1)) if log else 0
        match draw(st.sampled_from(["flip", "cut", "zero", "insert", "remove"])):
            case "flip" if log:
                log[at] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del log[at:]
            case "zero":
                log[at : at + 50] = bytes(len(log[at : at + 50]))
            case "insert":
                log[at:at] = draw(st.binary(max_size=30))
            case _:
                del log[at : at + draw(st.integers(1, 30))]
    return bytes(log)


@given(logs(), CHUNKS)
@example(b"", 64)
@example(LOG_HEADER, 64)
@example(LOG_HEADER + b"\0" * 11 + b"\1", 64)
def test_the_good_part_is_what_a_slow_reader_sees(log: bytes, chunk: int) -> None:
    given_away: list[bytes] = []
    found = txnlog.scan(io.BytesIO(log), chunk_bytes=chunk, sink=lambda piece: given_away.append(bytes(piece)))
    good = good_records(log)
    used = _used(log, good)
    assert b"".join(given_away) == log[:used]
    assert (found.size_bytes, found.records) == (used, len(good))
    assert (found.first_zxid, found.last_zxid) == ((good[0].zxid, good[-1].zxid) if good else (0, 0))
    times = [each.time_ms for each in good] or [0]
    assert (found.min_time_ms, found.max_time_ms) == (min(times), max(times))
    assert found.last_adler == (good[-1].adler if good else 0)
    assert (found.damage == ()) == ends_well(log, used)
    assert (found.padding is Padding.DAMAGE) == bool(found.damage)
    if not found.damage:
        assert found.padding is (Padding.ZEROS if len(log) > used else Padding.NOTHING)


@given(logs(), CHUNKS)
def test_damage_tells_where_it_is_and_where_records_go_on(log: bytes, chunk: int) -> None:
    for damage in txnlog.scan(io.BytesIO(log), chunk_bytes=chunk).damage:
        good = good_records(log)
        last = good[-1].zxid if good else 0
        assert (damage.position, damage.after_zxid) == (_used(log, good), last)
        behind = next_good(log, damage.position + 1 if damage.position else 16, last)
        if damage.kind is DamageKind.GAP:
            behind = record_at(log, damage.position)
        assert (damage.resumes_at, damage.resumes_zxid) == ((behind.position, behind.zxid) if behind else (None, None))
        if behind is None:
            assert damage.kind in (DamageKind.TORN, DamageKind.ORDER, DamageKind.BAD_HEADER)


@given(logs(), CHUNKS)
def test_a_deep_scan_finds_every_good_record_that_zxids_allow(log: bytes, chunk: int) -> None:
    found = txnlog.scan(io.BytesIO(log), chunk_bytes=chunk, deep=True)
    seen = found.records + sum(stretch.records for stretch in found.behind)
    assert seen == len(_every_good(log))
    assert len(found.behind) == sum(damage.resumes_at is not None for damage in found.damage)
    for damage, stretch in zip(found.damage, found.behind, strict=False):
        assert (damage.resumes_at, damage.resumes_zxid) == (stretch.start, stretch.first_zxid)
        alone = txnlog.scan(io.BytesIO(log), start_at=stretch.start, until_zxid=stretch.last_zxid, chunk_bytes=chunk)
        assert (alone.size_bytes, alone.records) == (stretch.end - stretch.start, stretch.records)
        assert (alone.last_zxid, alone.last_adler) == (stretch.last_zxid, stretch.last_adler)


@given(logs(), CHUNKS)
def test_bodies_and_tables_are_those_of_the_good_records(log: bytes, chunk: int) -> None:
    bodies, positions, whole = [], [], True
    try:
        for records in txnlog.tables(io.BytesIO(log), chunk):
            for at, size in zip(records.body_at, records.body_bytes, strict=True):
                bodies.append(bytes(records.data[at : at + size]))
                positions.append(records.position + at - 12)
    except Damaged:
        whole = False
    good = good_records(log)
    assert bodies == [each.body for each in good]
    assert positions == [each.position for each in good]
    assert whole == ends_well(log, _used(log, good))


@given(logs(), st.integers(0, 600), st.sampled_from([1, 3, 0x100000001, 1 << 62]))
def test_limits_are_kept(log: bytes, most_bytes: int, until: int) -> None:
    cut = txnlog.scan(io.BytesIO(log), most_bytes=most_bytes)
    assert cut == txnlog.scan(io.BytesIO(log[:most_bytes]))
    found = txnlog.scan(io.BytesIO(log), until_zxid=until)
    assert found.last_zxid <= until
    assert found.records == sum(each.zxid <= until for each in good_records(log))


@given(st.lists(st.tuples(logs(), CHUNKS), min_size=1, max_size=2), st.integers(0, 3), st.booleans())
def test_a_file_on_disk_is_the_same_as_memory(cases: list[tuple[bytes, int]], before: int, buffered: bool) -> None:
    """Also when it has a hole behind it, and when reading begins in the middle of it."""
    with TemporaryDirectory() as folder:
        for number, (log, chunk) in enumerate(cases):
            path = Path(folder) / str(number)
            path.write_bytes(b"x" * before + log)
            with path.open("r+b") as file:
                file.truncate(before + len(log) + (1 << 14))
            with path.open("rb", -1 if buffered else 0) as opened:
                opened.seek(before)
                on_disk = txnlog.scan(opened, chunk_bytes=chunk, deep=True)
            assert on_disk == txnlog.scan(io.BytesIO(log + bytes(1 << 14)), chunk_bytes=chunk, deep=True)


def test_a_record_that_is_drawn_is_read_back() -> None:
    """The drawn logs must not all be broken."""
    log = log_of(set_data(zxid) for zxid in range(1, 4))
    assert [each.zxid for each in good_records(log)] == [1, 2, 3]


def _used(log: bytes, good: list[SlowRecord]) -> int:
    return good[-1].end if good else 16 * (log[:16] == LOG_HEADER)


def _every_good(log: bytes) -> list[SlowRecord]:
    """Good records in order, each of a later zxid than the one before, wherever they begin."""
    found: list[SlowRecord] = []
    at = 16
    while (record := next_good(log, at, found[-1].zxid if found else 0)) is not None:
        found.append(record)
        at = record.end
    return found
