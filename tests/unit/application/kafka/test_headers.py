"""Stamps and sources over header lists, and the last checkpoint in the metadata of an offset."""

import pytest

from logkeep.application.kafka.headers import Stamps, checkpoint_in, offset_metadata
from logkeep.checkpoint.records import MessageSource

SHOP, OTHER = Stamps.of("shop"), Stamps.of("other")
SOURCE = MessageSource("orders", 3, 17, 1)


def test_r27_an_output_carries_the_last_checkpoint_and_its_cause() -> None:
    headers = SHOP.stamped([("trace", b"x")], 9, SOURCE)
    assert headers[0] == ("trace", b"x")
    assert (SHOP.checkpoint_of(headers), SHOP.source_of(headers)) == (9, SOURCE)


def test_a_stamp_is_replaced_and_not_added() -> None:
    again = SHOP.stamped(SHOP.stamped([], 3, SOURCE), 4, SOURCE)
    assert [name for name, _ in again] == ["lk-cp", "lk-src"]
    assert SHOP.checkpoint_of(again) == 4


@pytest.mark.parametrize(("last", "forced"), [(8, 9), (9, None), (10, None)])
def test_r28_r29_only_a_newer_checkpoint_forces_one(last: int, forced: int | None) -> None:
    assert SHOP.forced_by(SHOP.stamped([], 9, SOURCE), last) == forced


@pytest.mark.parametrize("headers", [None, [], [("lk-cp", None)], [("lk-cp", b"")], [("lk-cp", b"\x02" + b"\0" * 28)]])
def test_r30_no_stamp_or_an_unreadable_one_forces_nothing(headers: list[tuple[str, bytes | None]] | None) -> None:
    assert SHOP.forced_by(headers, 0) is None
    assert SHOP.source_of(headers) is None


def test_a_stamp_of_another_application_forces_nothing() -> None:
    assert OTHER.forced_by(SHOP.stamped([], 9, SOURCE), 0) is None
    assert not OTHER.is_own(SHOP.stamped([], 9, SOURCE))


def test_the_last_checkpoint_is_read_from_the_metadata_of_an_offset() -> None:
    assert checkpoint_in(offset_metadata(20261118)) == 20261118
    assert checkpoint_in(offset_metadata(7) + "9h\x7f") == 7


@pytest.mark.parametrize("metadata", [None, "", "lk1:", "lk2:5;", "lk1:5x", "x lk1:5;"])
def test_other_metadata_means_no_checkpoint_yet(metadata: str | None) -> None:
    assert checkpoint_in(metadata) == 0
