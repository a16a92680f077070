"""Whatever was restored: a map says of every position what a search through the records says, and survives storage."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import Damaged, FormatTooNew
from logkeep.formats.run_map.file_format import Route, decode, decode_all, encode
from logkeep.formats.run_map.runs import RunMap, RunMapBuilder
from tests.property.untimed import many
from tests.support.kafka.run_maps import encode_all

Records = list[tuple[int, int]]


@st.composite
def restored(draw: st.DrawFn) -> tuple[RunMap, Records]:
    """A map, and record by record what is in it."""
    start = draw(st.sampled_from([0, 3, 2**40]))
    offset, target, records = start, draw(st.sampled_from([0, 7, 2**41])), []
    builder = RunMapBuilder(start, start + 400, target)
    for _ in range(draw(st.integers(0, 6))):
        rows = []
        for _ in range(draw(st.integers(0, 4))):
            offset += draw(st.integers(0, 3))
            n = draw(st.integers(0, 5))
            rows.append((offset, n))
            records += [(offset + i, target + i) for i in range(n)]
            offset, target = offset + n, target + n
        builder.extend(np.array(rows, np.int64).reshape(-1, 2))
        if draw(st.booleans()):
            target += draw(st.integers(0, 3))
            builder.skip_to(target)
    return builder.finish(), records


@many
@given(restored(), st.integers(-5, 420))
def test_lookups_agree_with_a_slow_search(made: tuple[RunMap, Records], step: int) -> None:
    runs, records = made
    offset = runs.start + step
    expected = next((t for s, t in records if s >= offset), runs.target_end)
    assert runs.translate(offset) == (expected, offset in dict(records))
    assert runs.records == len(records)
    assert runs.records_before(offset) == sum(s < offset for s, _ in records)
    assert runs.placed_before(offset) == sum(t < offset for _, t in records)


@many
@given(restored(), st.lists(st.integers(0, 420), max_size=20))
def test_many_offsets_at_once_are_each_alone(made: tuple[RunMap, Records], steps: list[int]) -> None:
    runs, _ = made
    wanted = [runs.start + step for step in steps]
    targets, exact = runs.at(wanted)
    assert list(zip(targets.tolist(), exact.tolist(), strict=True)) == [runs.translate(offset) for offset in wanted]


@many
@given(restored())
def test_there_is_one_run_per_break(made: tuple[RunMap, Records]) -> None:
    runs, records = made
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(records)]
    assert len(runs) == (1 + sum(step != (1, 1) for step in steps) if records else 0)


@many
@given(restored(), restored())
def test_a_stored_map_is_the_same_map(one: tuple[RunMap, Records], two: tuple[RunMap, Records]) -> None:
    assert decode(encode(one[0])) == one[0]
    maps = {Route("a", 0, "b", 1): one[0], Route("a", 0, "b", 2): two[0]}
    assert decode_all(encode_all(maps)) == maps


@many
@given(st.binary(max_size=200), restored())
def test_no_bytes_do_worse_than_an_error(noise: bytes, made: tuple[RunMap, Records]) -> None:
    whole = encode(made[0])
    for data in (noise, whole[:16] + noise, whole[:40] + noise, b"LKRMAS01" + noise):
        for read in (decode, decode_all):
            try:
                read(data)
            except (Damaged, FormatTooNew):
                continue
            assert data in (whole, b"LKRMAS01" + noise)
