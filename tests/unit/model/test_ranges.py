"""Pieces that tile a range: gaps and overlaps."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from logkeep.model.ranges import Range, tile


@given(st.integers(0, 20), st.lists(st.integers(0, 20), max_size=6), st.data())
def test_pieces_cut_from_a_span_tile_it(length: int, cuts: list[int], data: st.DataObject) -> None:
    span = Range(5, 5 + length)
    edges = sorted({5, 5 + length, *(5 + c % (length + 1) for c in cuts)})
    pieces = [Range(a, b) for a, b in pairwise(edges)]
    assert tile(span, data.draw(st.permutations(pieces))).exact
    for missing in pieces:
        assert tile(span, [p for p in pieces if p != missing]).gaps == (missing,)
    if pieces:
        assert tile(span, [*pieces, pieces[0]]).overlaps


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=8))
def test_tiling_counts_every_position(pairs: list[tuple[int, int]]) -> None:
    pieces = [Range(min(p), max(p)) for p in pairs]
    span = Range(4, 25)
    times = [sum(p.start <= x < p.end for p in pieces) for x in range(4, 25)]
    found = tile(span, pieces)
    assert sum(map(len, found.gaps)) == times.count(0)
    assert bool(found.overlaps) == any(t > 1 for t in times)
