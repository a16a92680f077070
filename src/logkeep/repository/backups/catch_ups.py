"""Receipts of catch-ups: what was copied of a topic beside its active copy, and what of it was read back.

They are not in the journal of a backup: a resumed run would continue them as a part of that backup. A task puts a
`copied` receipt as its last act; the driver puts a `verified` one after it has read the objects back. Both keep their
objects as long as the chain has the catch-up. Afterwards they are garbage.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Annotated, ClassVar

import msgspec

from logkeep.errors import Damaged
from logkeep.model.segments import Segment, Token
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import MIB, SourceDocument, put_own, read, seal
from logkeep.repository.chain.fold import CatchUp


class CatchUpStep(StrEnum):
    COPIED = "copied"
    VERIFIED = "verified"


class CatchUpReceipt(SourceDocument, frozen=True, kw_only=True, tag="catch-up-receipt"):
    limit: ClassVar[int] = 16 * MIB

    catch_up: Token
    step: CatchUpStep
    run: str
    unit: Annotated[str, msgspec.Meta(min_length=1, max_length=120)]
    segments: tuple[Segment, ...]
    note: str = ""
    """What the kind of source keeps of the unit."""


def put_catch_up_receipt(place: SourceRef, receipt: CatchUpReceipt, token: str) -> None:
    name = layout.catch_up_receipt(place.source, receipt.catch_up, receipt.step, receipt.unit, token)
    put_own(place.store, name, seal(receipt))


def catch_up_receipts(
    place: SourceRef,
    catch_up: CatchUp,
    damaged: list[str] | None = None,
    known: dict[str, CatchUpReceipt] | None = None,
) -> Iterator[CatchUpReceipt]:
    """All receipts of a catch-up. Unreadable ones are skipped and added to `damaged`: their units are repeated.

    `known`: receipts by name that were read before, and are not read again; receipts that are read are added.
    """
    for info in place.store.list(layout.catch_up(place.source, catch_up.token)):
        receipt = (known or {}).get(info.name)
        with suppress(Damaged):
            receipt = receipt or read(place.store, info.name, CatchUpReceipt, place.repository)
        if receipt is not None and (receipt.source, receipt.catch_up) == (place.source, catch_up.token):
            if known is not None:
                known[info.name] = receipt
            yield receipt
        elif damaged is not None:
            damaged.append(info.name)


def verified_units(receipts: Sequence[CatchUpReceipt]) -> dict[str, CatchUpReceipt]:
    """One receipt for each unit that was verified. An attempt that ran twice left two, with objects of their own."""
    found: dict[str, CatchUpReceipt] = {}
    for each in receipts:
        if each.step is CatchUpStep.VERIFIED:
            found.setdefault(each.unit, each)
    return found
