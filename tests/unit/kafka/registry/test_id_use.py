"""Which topics were written with schemas, and which ids the registry does not know."""

import pytest

from logkeep.kafka.registry.id_use import MOST_UNKNOWN, SideUse, UnknownId, UseVerdict, join_uses


def _use(records: int, fitting: int, known: int, eight_bytes: int = 0, **more: object) -> SideUse:
    counts = {"records": records, "fitting": fitting, "known": known, "eight_bytes": eight_bytes}
    return SideUse(topic="t", side="value", **counts, **more)  # type: ignore[arg-type]  # fields of it


@pytest.mark.parametrize(
    ("use", "verdict"),
    (
        (_use(0, 0, 0), UseVerdict.NONE),
        (_use(100, 0, 0), UseVerdict.NONE),
        (_use(100, 100, 100), UseVerdict.SCHEMAS),
        (_use(100, 96, 1), UseVerdict.SCHEMAS),
        (_use(100, 100, 0), UseVerdict.SCHEMAS),  # all of its schemas are lost
        (_use(100, 100, 0, eight_bytes=100), UseVerdict.NUMBERS),
        (_use(100, 100, 1, eight_bytes=100), UseVerdict.SCHEMAS),
        (_use(100, 3, 0), UseVerdict.NONE),  # chance
        (_use(100, 40, 30), UseVerdict.MIXED),
    ),
)
def test_verdicts(use: SideUse, verdict: UseVerdict) -> None:
    assert use.verdict is verdict


def test_parts_are_joined_with_the_first_record_of_all() -> None:
    one = _use(10, 10, 4, unknown=(UnknownId(7, 6, 2, 100),))
    two = _use(20, 20, 11, unknown=(UnknownId(7, 5, 1, 900), UnknownId(9, 4, 0, 3)))
    (joined,) = join_uses([one, two])
    assert (joined.records, joined.fitting, joined.known) == (30, 30, 15)
    assert joined.unknown == (UnknownId(7, 11, 1, 900), UnknownId(9, 4, 0, 3))


def test_very_many_unknown_ids_are_counted_not_listed() -> None:
    parts = [
        _use(2000, 2000, 0, unknown=tuple(UnknownId(n, 1, 0, n) for n in range(start, start + 800)))
        for start in (1, 801)
    ]
    (joined,) = join_uses(parts)
    assert len(joined.unknown) == MOST_UNKNOWN
    assert joined.unlisted == 600
