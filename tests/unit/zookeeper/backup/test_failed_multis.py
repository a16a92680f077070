"""Multis that failed, as an observer of 3.4 logs them: tried before they were written, so every part says -1."""

import io
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from logkeep.formats.zookeeper.jute import packed_buffer, packed_int
from logkeep.formats.zookeeper.names import log_name
from logkeep.formats.zookeeper.transactions import HEADER, Multi, TransactionType, decode
from logkeep.formats.zookeeper.txnlog import tables
from logkeep.zookeeper.timeline.survey import compared
from tests.support.zookeeper.handmade_directories import MadeServer, bundled
from tests.support.zookeeper.handmade_server import create, log_bytes
from tests.support.zookeeper.repositories import archived, new_place, newest, zxids

_CREATED = create(7, b"/a", b"data")[HEADER.size :]


def _multi(kinds: tuple[int, int], data: bytes = _CREATED) -> bytes:
    parts = packed_int(kinds[0]) + packed_buffer(data) + packed_int(kinds[1]) + packed_buffer(struct.pack(">i", -101))
    return HEADER.pack(1, 0, 7, 0, TransactionType.MULTI) + packed_int(2) + parts


VOTER, OBSERVER = (
    _multi((TransactionType.CREATE, TransactionType.ERROR)),
    _multi((TransactionType.ERROR, TransactionType.ERROR)),
)


def _differing(one: bytes, other: bytes) -> list[int]:
    found = compared(tables(io.BytesIO(log_bytes([one]))), tables(io.BytesIO(log_bytes([other]))))
    return [zxid for _, differing in found for zxid in differing]


def test_it_is_read_and_changes_nothing() -> None:
    change = decode(OBSERVER).change
    assert isinstance(change, Multi)
    assert not change.applied


def test_members_do_not_disagree_about_it() -> None:
    assert VOTER != OBSERVER
    assert _differing(VOTER, OBSERVER) == []


def test_they_do_about_others() -> None:
    assert _differing(create(7, b"/a"), create(7, b"/b")) == [7]
    assert _differing(VOTER, _multi((TransactionType.CREATE, TransactionType.CREATE), _CREATED)) == [7]
    assert _differing(VOTER, create(7, b"/a")) == [7]


def _server(root: Path, *logs: Sequence[bytes]) -> MadeServer:
    """`logs`: bodies; each is named after its first."""
    server = MadeServer(root / "server", zxid=9)
    server.snapshot(5)
    for bodies in logs:
        name = log_name(decode(bodies[0]).zxid)
        (server.log_dir / name).write_bytes(log_bytes(bodies))
    return server


SIX, EIGHT, NINE = create(6, b"/six"), create(8, b"/eight"), create(9, b"/nine")


@pytest.mark.parametrize(
    "logs",
    [
        ((SIX, VOTER, SIX, OBSERVER, EIGHT, NINE),),
        ((SIX, OBSERVER, EIGHT), (VOTER, EIGHT, NINE)),
        ((SIX, VOTER), (OBSERVER, EIGHT, NINE)),
        ((SIX, VOTER, EIGHT, NINE), (OBSERVER,)),
        ((SIX, VOTER, EIGHT, NINE), (OBSERVER, EIGHT, NINE)),
    ],
)
def test_one_that_a_member_logs_again_in_the_other_way_is_the_same(
    tmp_path: Path, logs: tuple[tuple[bytes, ...], ...]
) -> None:
    """As members of 3.5 do when they have caught up: nothing contradicts anything, and what comes behind it is kept."""
    server = _server(tmp_path, *logs)
    view, done = bundled(server, tmp_path / "out")
    assert {f.code for f in done.findings} <= {"logged-again"}
    assert (done.exit_code, min(log.first for log in view.logs), max(log.last for log in view.logs)) == (0, 6, 9)
    assert sum(log.records for log in view.logs) == 4


def test_another_transaction_of_that_number_is_another_one(tmp_path: Path) -> None:
    server = _server(tmp_path, (SIX, VOTER), (create(7, b"/other"), EIGHT, NINE))
    _, done = bundled(server, tmp_path / "out")
    assert "log-overlap" in {f.code for f in done.findings}
    assert done.exit_code == 21


@pytest.mark.parametrize("later", [(OBSERVER, EIGHT, NINE), (SIX, OBSERVER, EIGHT, NINE)])
def test_nor_does_it_end_a_history(tmp_path: Path, later: tuple[bytes, ...]) -> None:
    """It was the last that was archived, and the next log begins with it, or has it among others."""
    place, server = new_place(), _server(tmp_path, (SIX, VOTER))
    server.zxid = 7
    assert archived(place, server).exit_code == 0
    behind = () if later[0] == OBSERVER else (SIX, VOTER)
    (server.log_dir / ("log.6" if behind else "log.7")).write_bytes(log_bytes((*behind, *later)))
    server.zxid = 9
    done = archived(place, server)
    assert (done.exit_code, {f.code for f in done.findings} <= {"logged-again"}) == (0, True)
    assert max(last for _, last in zxids(newest(place))) == 9
