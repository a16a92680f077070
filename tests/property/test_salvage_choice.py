"""The choice among copies of a log: it tiles the log, believes the right copy, and fills in only what must be equal."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from logkeep.kafka.disks.layout import segments, swap_files
from logkeep.kafka.disks.scan_results import ReplicaScan, SegmentDamage
from logkeep.kafka.logs.leader_epochs import EpochStart
from logkeep.kafka.salvage.replicas import agree_around, best_copy, merge_replicas
from logkeep.model.ranges import Range, tile
from tests.property.untimed import many


@dataclass(frozen=True)
class _World:
    """A leader's log as (epoch of each offset), and copies of it that lag, diverge and rot."""

    scans: tuple[ReplicaScan, ...]
    contents: tuple[dict[int, tuple[str, int]], ...]
    """Of each copy: what a record is, by offset."""


def _epochs(content: dict[int, tuple[str, int]]) -> tuple[EpochStart, ...]:
    found: list[EpochStart] = []
    for offset, (_, epoch) in sorted(content.items()):
        if not found or found[-1].epoch != epoch:
            found.append(EpochStart(epoch, offset))
    return tuple(found)


@st.composite
def worlds(draw: st.DrawFn) -> _World:
    """Each copy is a prefix of the true log, perhaps with a tail that it wrote as a leader of its own."""
    length = draw(st.integers(1, 40))
    borders = sorted(draw(st.sets(st.integers(1, length), max_size=3)))
    true = {o: ("true", 10 * sum(b <= o for b in borders)) for o in range(length)}
    scans, contents = [], []
    for node in range(draw(st.integers(1, 3))):
        kept = draw(st.integers(0, length))
        content = {o: true[o] for o in range(kept)}
        if draw(st.booleans()) and kept:
            own = true[kept - 1][1] + 1 + node  # an epoch has one leader, ever
            content |= dict.fromkeys(range(kept, kept + draw(st.integers(1, 5))), (f"of {node}", own))
        end = len(content)
        edges = sorted(draw(st.sets(st.integers(0, max(end - 1, 0)), max_size=4)))
        damages = tuple(
            SegmentDamage("f", a, a, "rot", b) for a, b in zip(edges[::2], edges[1::2], strict=False) if b < end
        )
        lost = {o for d in damages for o in range(d.offset, d.resumes)}
        good = {o: c for o, c in content.items() if o not in lost}
        scans.append(
            ReplicaScan(directory=str(node), node=node, start=0, end=end, damages=damages, epochs=_epochs(good))
        )
        contents.append(good)
    return _World(tuple(scans), tuple(contents))


@many
@given(worlds())
def test_pieces_and_gaps_tile_the_chosen_log(world: _World) -> None:
    choice = merge_replicas(world.scans, compacted=False)
    taken = world.scans[choice.replica]
    pieces = [*(Range(p.start, p.end) for p in choice.pieces), *choice.gaps]
    assert tile(Range(taken.start, taken.end), pieces).exact


@many
@given(worlds())
def test_every_piece_is_what_the_chosen_log_was(world: _World) -> None:
    choice = merge_replicas(world.scans, compacted=False)
    mine = world.contents[choice.replica]
    history = "true" if all(what == "true" for what, _ in mine.values()) else f"of {choice.replica}"
    for piece in choice.pieces:
        for offset in range(piece.start, piece.end):
            given_by = world.contents[piece.replica][offset]
            assert mine.get(offset, given_by) == given_by
            assert given_by[0] in {"true", history}, "a record that this history never had"


@many
@given(worlds())
def test_the_chosen_one_has_the_highest_epoch_then_the_most(world: _World) -> None:
    chosen = world.scans[best_copy(world.scans)]
    assert all((s.last_epoch, s.end) <= (chosen.last_epoch, chosen.end) for s in world.scans)


@many
@given(worlds())
def test_what_is_still_missing_nobody_could_give(world: _World) -> None:
    choice = merge_replicas(world.scans, compacted=False)
    for gap in choice.gaps:
        whole = next(g for g in world.scans[choice.replica].gaps if g.start <= gap.start and gap.end <= g.end)
        for index, scan in enumerate(world.scans):
            if index != choice.replica and agree_around(whole, world.scans[choice.replica], scan):
                assert not any(o in world.contents[index] for o in range(gap.start, gap.end))


_SUFFIXES = st.sampled_from(["", ".cleaned", ".swap", ".deleted"])


@many
@given(st.sets(st.tuples(st.integers(0, 9), _SUFFIXES)), st.integers(0, 12))
def test_every_file_is_taken_or_left_out_with_a_reason(files: set[tuple[int, str]], swap_end: int) -> None:
    names = {f"{base * 10:020d}.log{suffix}" for base, suffix in files}
    swaps = swap_files(names)
    found = segments(names, {s.name: s.base + swap_end for s in swaps})
    taken = [f.name for f in found.taken]
    assert sorted([*taken, *(name for name, _ in found.left_out)]) == sorted(names)
    assert taken == sorted(taken)
    assert len({f.base for f in found.taken}) == len(taken) or not swap_end
    assert not any(n.endswith((".cleaned", ".deleted")) for n in taken)
