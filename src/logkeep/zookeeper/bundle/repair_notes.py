"""The `repairs` of a bundle's document: what was repaired, from which files, and what stays lost."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.time import Clock, rfc3339
from logkeep.zookeeper.bundle import layout
from logkeep.zookeeper.bundle.document import WITHOUT_DOCUMENT, Hex
from logkeep.zookeeper.bundle.info_file import document_of
from logkeep.zookeeper.model.archived import ArchivedSnapshot
from logkeep.zookeeper.repair.plan import RepairPlan

DROPPED: Final = "dropped"
"""A damaged snapshot without another copy."""


class NotedSpan(msgspec.Struct, frozen=True):
    first: Hex = msgspec.field(name="from")
    last: Hex = msgspec.field(name="to")

    @property
    def zxids(self) -> tuple[int, int]:
        return int(self.first, 16), int(self.last, 16)

    def __str__(self) -> str:
        return f"{self.first} to {self.last}"


class RepairNote(msgspec.Struct, frozen=True, kw_only=True):
    of: str
    kind: str
    lost: tuple[NotedSpan, ...] = ()
    unreachable: tuple[NotedSpan, ...] = ()
    """Transactions that could be restored to before a snapshot was dropped, and cannot be since."""


def repair_notes(bundle: Path) -> tuple[RepairNote, ...]:
    """Raises Damaged."""
    try:
        return msgspec.convert(document_of(bundle).get("repairs", []), type=tuple[RepairNote, ...])
    except msgspec.ValidationError as error:
        raise Damaged(
            f"its list of repairs does not follow its schema: {error}",
            subject=str(layout.info_path(bundle)),
            remedy=WITHOUT_DOCUMENT,
        ) from error


def repaired_note(repair: RepairPlan, clock: Clock) -> dict[str, Any]:
    """Includes where the new records are from."""
    return {
        "of": repair.of.name,
        "kind": repair.kind.value,
        "original_checksum": f"sha256:{repair.of.sha256}",
        "lost": _spans(repair.lost),
        "spliced": [
            {"from": hex_zxid(p.first), "to": hex_zxid(p.last), "log_checksum": f"sha256:{p.donor.log.sha256}"}
            for p in repair.spliced
        ],
        "repaired_at": rfc3339(clock()),
    }


def dropped_note(snapshot: ArchivedSnapshot, unreachable: Sequence[tuple[int, int]], clock: Clock) -> dict[str, Any]:
    return {
        "of": snapshot.name,
        "kind": DROPPED,
        "original_checksum": f"sha256:{snapshot.sha256}",
        "lost": [],
        "unreachable": _spans(unreachable),
        "repaired_at": rfc3339(clock()),
    }


def _spans(zxids: Sequence[tuple[int, int]]) -> list[dict[str, str]]:
    return [{"from": hex_zxid(first), "to": hex_zxid(last)} for first, last in zxids]
