"""Two logs with the same records are the same in whatever batches; the first record that deviates is found."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.compare.digest import Digest
from logkeep.formats.compare.first_difference import first_deviation
from logkeep.formats.compare.record_compare import Flags, LogSide, PairedComparison
from logkeep.formats.kafka.batches import APPEND_TIME, CONTROL, Batches, BatchStretch, walk
from logkeep.formats.kafka.record_view import View
from tests.property.untimed import untimed
from tests.support.kafka.log_strategies import GZIP, Seen, Shaped, ShapedBatch, shaped_logs
from tests.support.kafka.slow_records import Slow, batch_of, gzipped, slow_digest


@dataclass(frozen=True)
class Put:
    """A batch of a target: records at offsets of their own."""

    records: tuple[tuple[int, int, Slow], ...]
    verbatim: ShapedBatch | None = None
    packed: bool = False

    def encode(self) -> bytes:
        base, base_time, _ = self.records[0]
        if self.verbatim is not None:
            return replace(self.verbatim, base=base).encode()
        renumbered = [replace(r, delta=o - base, time_delta=t - base_time) for o, t, r in self.records]
        plain = b"".join(r.encode() for r in renumbered)
        fields = {"attributes": GZIP, "base_time_ms": base_time} if self.packed else {"base_time_ms": base_time}
        return batch_of(base, renumbered, gzipped(plain) if self.packed else plain, **fields)


def _visible(log: Shaped, start: int, end: int) -> list[Seen]:
    return [s for batch in log for s in batch.seen if not s.control and start <= s.offset < end]


def _runs(seen: list[Seen]) -> Iterator[list[Seen]]:
    run: list[Seen] = []
    for each in seen:
        if run and each.offset != run[-1].offset + 1:
            yield run
            run = []
        run.append(each)
    if run:
        yield run


@st.composite
def _restored(draw: st.DrawFn, log: Shaped, start: int, end: int, *, keep: bool) -> list[Put]:
    """What a restore makes of a log: batches as they are where that is possible, else parts of each."""
    found, at = list[Put](), draw(st.integers(0, 9))
    for batch in log:
        seen = _visible([batch], start, end)
        whole = batch.dense and len(seen) == len(batch.records) and not batch.attributes & APPEND_TIME
        groups = [seen] if whole else list(_runs(seen)) if keep else [seen]
        for group in groups:
            size = len(group) if whole else draw(st.integers(1, max(len(group), 1)))
            for part in (group[i : i + size] for i in range(0, len(group), size)):
                places = [s.offset if keep else at + i for i, s in enumerate(part)]
                at = places[-1] + 1
                records = tuple((o, s.time_ms, s.record) for o, s in zip(places, part, strict=True))
                found.append(Put(records, batch if whole and draw(st.integers(0, 9)) else None, draw(st.booleans())))
    return found


def _stretches(data: list[bytes], cuts: st.DataObject) -> Iterator[BatchStretch]:
    """In pieces of any number of batches. A piece is spoilt as soon as the next is asked for."""
    while data:
        now = cuts.draw(st.integers(1, len(data)))
        buffer, data = bytearray(b"".join(data[:now])), data[now:]
        yield BatchStretch(buffer, walk(buffer).batches)
        buffer[:] = bytes(len(buffer))


def _records_only(batches: Batches) -> Flags:
    flags: Flags = (batches.headers["attributes"] & CONTROL) == 0
    return flags


def _sides(log: Shaped, view: View, target: list[Put], cuts: st.DataObject) -> tuple[LogSide, LogSide]:
    archived = _stretches([batch.encode() for batch in log], cuts)
    live = _stretches([put.encode() for put in target], cuts)
    return LogSide(archived, view, view.visible, "archive"), LogSide(live, View(0, 10_000), _records_only, "target")


def _sums(digest: Digest) -> tuple[int, int, int, int]:
    return digest.records, digest.content_a, digest.content_b, digest.offsets


def _slow(records: list[tuple[int, int, Slow]]) -> tuple[int, int, int, int]:
    return len(records), *slow_digest(records)


@st.composite
def _cases(draw: st.DrawFn) -> tuple[Shaped, View, list[Put]]:
    log = draw(shaped_logs(12))
    last = log[-1].last + 1 if log else 0
    start = draw(st.integers(0, last)) if draw(st.booleans()) else 0
    end = draw(st.integers(start, last)) if draw(st.booleans()) else last
    keep = draw(st.booleans())
    return log, View(start, end, None, keep), draw(_restored(log, start, end, keep=keep))


@untimed
@given(_cases(), st.data())
def test_the_same_records_are_the_same_in_whatever_batches(
    case: tuple[Shaped, View, list[Put]], data: st.DataObject
) -> None:
    log, view, target = case
    twins = PairedComparison(*_sides(log, view, target, data)).run()
    assert twins.same
    seen = [(s.offset, s.time_ms, s.record) for s in _visible(log, view.start, view.end)]
    assert _sums(twins.left_digest) == _slow(seen)
    assert _sums(twins.right_digest) == _slow([r for put in target for r in put.records])
    left, right = _sides(log, view, target, data)
    kept = view.keep_offsets
    assert first_deviation(left.records(left.parts()), right.records(right.parts()), 99, keep_offsets=kept) is None


@untimed
@given(_cases(), st.data())
def test_the_first_record_that_deviates_is_found(case: tuple[Shaped, View, list[Put]], data: st.DataObject) -> None:
    log, view, target = case
    flat = [r for put in target for r in put.records]
    changed = _spoilt(flat, data)
    puts = [Put((record,)) for record in changed] if data.draw(st.booleans()) else _like(target, changed)
    archived = [(s.offset, s.time_ms, s.record) for s in _visible(log, view.start, view.end)]
    twins = PairedComparison(*_sides(log, view, puts, data)).run()
    expected = _first(archived, changed, keep=view.keep_offsets)
    assert twins.same == (expected is None)
    assert _sums(twins.right_digest) == _slow(changed)
    left, right = _sides(log, replace(view, start=max(view.start, twins.border[0])), puts, data)
    right = replace(right, view=View(max(twins.border[1], 0), 10_000))
    ours, theirs = left.records(left.parts()), right.records(right.parts())
    found = first_deviation(ours, theirs, 9_999, keep_offsets=view.keep_offsets)
    assert (found.offset if found else None) == expected


def _spoilt(flat: list[tuple[int, int, Slow]], data: st.DataObject) -> list[tuple[int, int, Slow]]:
    """One thing done to the records of a target; offsets stay as they were for those that are not touched."""
    if not flat:
        return [(5, 5, Slow(value=b"foreign"))]
    at = data.draw(st.integers(0, len(flat) - 1))
    offset, time_ms, old = flat[at]
    kind = data.draw(
        st.sampled_from(("time", "key", "null", "headers", "gone", "swapped", "foreign", "tail", "as it is"))
    )
    changes = {
        "time": (offset, time_ms + 1, old),
        "key": (offset, time_ms, replace(old, key=(old.key or b"") + b"!")),
        "null": (offset, time_ms, replace(old, value=b"" if old.value is None else None)),
        "headers": (offset, time_ms, replace(old, headers=(*old.headers, (b"", None)))),
    }
    if kind in changes:
        return [*flat[:at], changes[kind], *flat[at + 1 :]]
    if kind == "gone":
        return [*flat[:at], *flat[at + 1 :]]
    if kind == "swapped" and at:
        before = flat[at - 1]
        return [*flat[: at - 1], (before[0], time_ms, old), (offset, *before[1:]), *flat[at + 1 :]]
    if kind == "foreign":
        return [*flat[:at], (offset, 7, Slow(value=b"foreign")), *((o + 1, t, r) for o, t, r in flat[at:])]
    return [*flat, (flat[-1][0] + 1, 7, Slow(value=b"foreign"))] if kind == "tail" else flat


def _like(target: list[Put], changed: list[tuple[int, int, Slow]]) -> list[Put]:
    """The changed records in the batches of the target, as far as these are the same."""
    by_offset = {r[0]: r for r in changed}
    found = list[Put]()
    for put in target:
        now = tuple(by_offset.pop(o) for o, _, _ in put.records if o in by_offset)
        if now:
            found.append(put if now == put.records else Put(now))
    puts = sorted([*found, *(Put((record,)) for record in by_offset.values())], key=lambda put: put.records[0][0])
    return puts if [r for put in puts for r in put.records] == changed else [Put((record,)) for record in changed]


def _first(archived: list[tuple[int, int, Slow]], target: list[tuple[int, int, Slow]], *, keep: bool) -> int | None:
    def plain(each: tuple[int, int, Slow]) -> tuple[object, ...]:
        content = (each[1], each[2].key, each[2].value, each[2].headers)
        return (each[0], *content) if keep else content

    for ours, theirs in zip(archived, target, strict=False):
        if plain(ours) != plain(theirs):
            return theirs[0]
    if len(archived) == len(target):
        return None
    return target[len(archived)][0] if len(target) > len(archived) else 9_999
