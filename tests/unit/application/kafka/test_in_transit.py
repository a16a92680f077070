"""Which records are in transit at a cut."""

from dataclasses import dataclass

import pytest

from logkeep.application.kafka.headers import Header, Stamps
from logkeep.application.kafka.in_transit import CutBounds, InTransit, in_transit
from logkeep.checkpoint.records import MessageSource

SHOP, N = Stamps.of("shop"), 10
POSITIONS = {
    ("orders", 0): CutBounds((50,), 40, 90),
    ("shared", 0): CutBounds((20, 30), 15, 60),
    ("receipts", 0): CutBounds((), 5, 25),
}


@dataclass(frozen=True)
class Produced:
    log: tuple[str, int]
    offset: int
    headers: tuple[Header, ...]


def produced(source: tuple[str, int, int], checkpoint_id: int, by: Stamps = SHOP) -> Produced:
    return Produced(("receipts", 0), 12, tuple(by.stamped([], checkpoint_id, MessageSource(*source, 0))))


def of(*records: Produced) -> InTransit:
    return in_transit(records, POSITIONS, SHOP, N)


def test_v5_a_record_whose_cause_was_read_before_the_checkpoint_is_in_transit() -> None:
    assert of(produced(("orders", 0, 49), N - 1)) == InTransit(((("receipts", 0), 12),), ())


def test_a_record_whose_cause_was_read_after_it_is_outside() -> None:
    assert of(produced(("orders", 0, 50), N)) == InTransit((), ())


def test_the_cause_decides_where_the_stamp_contradicts_it() -> None:
    found = of(produced(("orders", 0, 49), N), produced(("orders", 0, 50), N - 1))
    assert (len(found.records), len(found.disagreeing)) == (1, 2)


@pytest.mark.parametrize(("checkpoint_id", "inside"), [(N - 1, 1), (N, 0)])
def test_the_stamp_decides_between_the_positions_of_two_groups(checkpoint_id: int, inside: int) -> None:
    assert len(of(produced(("shared", 0, 25), checkpoint_id)).records) == inside


def test_records_of_clients_and_of_other_applications_are_outside() -> None:
    foreign = produced(("orders", 0, 1), 1, Stamps.of("other"))
    assert of(foreign, Produced(("receipts", 0), 3, ())) == InTransit((), ())


def test_what_belongs_to_the_cut_whole_ends_at_the_largest_position() -> None:
    assert [POSITIONS[log].kept_to for log in (("orders", 0), ("shared", 0), ("receipts", 0))] == [50, 30, 5]
