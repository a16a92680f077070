"""Comparing a live log with an archive of it: everything live and right is found, everything else is named."""

from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.compare.log_compare import LogComparison
from logkeep.formats.kafka.batches import BatchStretch, walk
from tests.property.untimed import untimed
from tests.support.kafka.slow_records import Slow, batch_of, gzipped

Log = list[tuple[int, list[Slow]]]


@st.composite
def _logs(draw: st.DrawFn) -> Log:
    found, base = Log(), draw(st.integers(0, 50))
    for size in draw(st.lists(st.integers(1, 6), min_size=1, max_size=6)):
        pairs = st.tuples(st.binary(max_size=3), st.one_of(st.none(), st.binary(max_size=20)))
        records = [Slow(d, d, *draw(pairs), longer=draw(st.integers(0, 1))) for d in range(size)]
        found.append((base, records))
        base += size + draw(st.integers(0, 2))
    return found


def _stretch(log: Log, packed: list[bool] | None = None) -> BatchStretch:
    data = b""
    for index, (base, records) in enumerate(log):
        plain, last = b"".join(r.encode() for r in records), max((r.delta for r in records), default=0)
        compressed = packed is not None and packed[index]
        data += batch_of(base, records, gzipped(plain) if compressed else plain, attributes=int(compressed), delta=last)
    return BatchStretch(data, walk(data).batches)


@untimed
@given(_logs(), st.data())
def test_what_compaction_leaves_is_found(log: Log, data: st.DataObject) -> None:
    kept = [(b, [r for r in records if data.draw(st.booleans())]) for b, records in log]
    packed = [data.draw(st.booleans()) for _ in log]
    live = [(b, [Slow(r.delta, r.time_delta, r.key, r.value, longer=0) for r in rs]) for b, rs in kept if rs]
    total = sum(len(rs) for _, rs in live)
    end = log[-1][0] + 10
    start = data.draw(st.integers(0, end))
    compared = LogComparison()
    for border in sorted({start, data.draw(st.integers(start, end)), end}):
        compared.compare(_stretch(live, packed), _stretch(log), start, border)
        start = border
    assert (compared.missing, compared.differing, compared.unreadable) == (0, 0, "")
    assert compared.identical + compared.equal <= total
    whole = LogComparison()
    whole.compare(_stretch(live, packed), _stretch(log), 0, end)
    assert whole.identical + whole.equal == total


@untimed
@given(_logs(), st.data())
def test_what_is_not_archived_or_archived_otherwise_is_named(log: Log, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(log) - 1))
    base, records = log[index]
    row = data.draw(st.integers(0, len(records) - 1))
    old = records[row]
    kind = data.draw(st.sampled_from(("gone", "batch", "key", "value", "time", "header")))
    other = {
        "key": Slow(old.delta, old.time_delta, (old.key or b"") + b"!", old.value),
        "value": Slow(old.delta, old.time_delta, old.key, b"" if old.value is None else None),
        "time": Slow(old.delta, old.time_delta + 1, old.key, old.value),
        "header": Slow(old.delta, old.time_delta, old.key, old.value, ((b"", None),)),
    }.get(kind)
    changed = [*records[:row], *([other] if other else []), *records[row + 1 :]]
    archived = [*log[:index], *([(base, changed)] if kind != "batch" and changed else []), *log[index + 1 :]]
    compared = LogComparison()
    compared.compare(_stretch(log), _stretch(archived), 0, log[-1][0] + 10)
    if other:
        assert (compared.differing, compared.first_differing, compared.missing) == (1, base + old.delta, 0)
    else:
        count, first = (len(records), base) if kind == "batch" else (1, base + old.delta)
        assert (compared.missing, compared.first_missing, compared.differing) == (count, first, 0)
