"""Large replies are received in large pieces, and slow replies in small ones."""

import socket
import struct
from collections.abc import Iterator

import pytest

from logkeep.kafka.client.frames import receive_some

_TIMEOUT_S = 0.2


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Broker's end and ours, over TCP: other sockets have no such mark."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname()[:2], timeout=_TIMEOUT_S)
        broker, _ = server.accept()
        with ours, broker:
            yield broker, ours


def test_bytes_that_come_too_slowly_for_a_large_piece_are_progress(ends: tuple[socket.socket, socket.socket]) -> None:
    broker, ours = ends
    broker.sendall(b"slow")
    memory = bytearray(1 << 20)
    assert receive_some(ours, memoryview(memory)) == 4
    assert memory[:4] == b"slow"
    assert ours.gettimeout() == _TIMEOUT_S


def test_nothing_at_all_is_a_timeout(ends: tuple[socket.socket, socket.socket]) -> None:
    _, ours = ends
    with pytest.raises(TimeoutError):
        receive_some(ours, memoryview(bytearray(100)))
    assert ours.gettimeout() == _TIMEOUT_S


def test_a_small_piece_after_a_large_one_is_waited_for_at_its_own_size(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    broker, ours = ends
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1 << 20)
    broker.sendall(struct.pack(">i", 7))
    assert receive_some(ours, memoryview(bytearray(4))) == 4
    assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 4


def test_what_was_sent_before_the_end_comes_before_the_end(ends: tuple[socket.socket, socket.socket]) -> None:
    broker, ours = ends
    ours.settimeout(None)
    broker.sendall(b"last")
    broker.shutdown(socket.SHUT_WR)
    memory = memoryview(bytearray(1 << 20))
    assert receive_some(ours, memory) == 4
    assert receive_some(ours, memory) == 0
