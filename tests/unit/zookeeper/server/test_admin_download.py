"""A hostile AdminServer over a real socket: endless and slow snapshots, odd headers. Errors with a remedy, no crash."""

import gzip
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from logkeep.errors import BackupFailed, ClusterError, ClusterUnreachable, Damaged, InvalidAnswer, LogkeepError
from logkeep.formats.zookeeper.snapshot import DBID, HEADER, MAGIC, VERSION
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.zookeeper.backup.admin_snapshot import fetched_snapshot
from logkeep.zookeeper.model.tree import new_tree, rows_of
from logkeep.zookeeper.server.admin_download import DownloadLimits
from logkeep.zookeeper.server.admin_http import AdminServer, download, server_facts

_BLOCK = bytes(64 << 10)
Serve = Callable[[Callable[[socket.socket], object]], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server whose answer to every request is what a function sends."""
    servers: list[socket.socket] = []

    def start(answer: Callable[[socket.socket], object]) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)
        threading.Thread(target=_accept, args=(server, answer), daemon=True).start()
        return f"http://127.0.0.1:{server.getsockname()[1]}"

    yield start
    for server in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


def _accept(server: socket.socket, answer: Callable[[socket.socket], object]) -> None:
    with suppress(OSError):
        while True:
            made, _ = server.accept()
            threading.Thread(target=_answer, args=(made, answer), daemon=True).start()


def _answer(made: socket.socket, answer: Callable[[socket.socket], object]) -> None:
    with suppress(OSError), made:
        made.recv(4096)
        answer(made)


def _headed(*lines: str) -> bytes:
    return "\r\n".join(("HTTP/1.0 200 OK", *lines, "", "")).encode("latin-1")


def _endless(made: socket.socket) -> None:
    made.sendall(_headed("last_zxid: 0x5"))
    while True:
        made.sendall(_BLOCK)


def _failure(url: str, path: Path, limits: DownloadLimits | None = None) -> LogkeepError:
    server = AdminServer(url, timeout_s=20, limits=limits or DownloadLimits(most_bytes=3 << 20, total_s=30))
    with pytest.raises(LogkeepError) as caught:
        download(server, path, lambda _: None)
    assert caught.value.remedy
    return caught.value


def test_a_snapshot_without_an_end_stops_at_the_limit(serve: Serve, tmp_path: Path) -> None:
    error = _failure(serve(_endless), tmp_path / "fetched")
    assert type(error) is ClusterError
    assert "larger than 3145728 bytes" in str(error)
    assert "--max-snapshot-bytes" in error.remedy
    assert (tmp_path / "fetched").stat().st_size <= 3 << 20


def test_an_announced_size_above_the_limit_is_not_downloaded(serve: Serve, tmp_path: Path) -> None:
    url = serve(lambda made: made.sendall(_headed("last_zxid: 0x5", "snapshot_size: 3145729") + _BLOCK))
    assert "larger than 3145728 bytes" in str(_failure(url, tmp_path / "fetched"))
    assert not (tmp_path / "fetched").exists()


def test_the_disk_keeps_its_reserve(serve: Serve, tmp_path: Path) -> None:
    """With the whole disk as the reserve, nothing may be written."""
    limits = DownloadLimits(most_bytes=1 << 40, total_s=30, reserve_bytes=1 << 60, reserve_part=1.0)
    error = _failure(serve(_endless), tmp_path / "fetched", limits)
    assert type(error) is BackupFailed
    assert "bytes would stay free" in str(error)
    assert (tmp_path / "fetched").stat().st_size == 0


def _dripping_body(made: socket.socket) -> None:
    made.sendall(_headed("last_zxid: 0x5"))
    _drip(made, b"x")


def _dripping_headers(made: socket.socket) -> None:
    made.sendall(b"HTTP/1.1 200 OK\r\nx: ")
    _drip(made, b"x")


def _continuing(made: socket.socket) -> None:
    while True:
        made.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


def _drip(made: socket.socket, byte: bytes) -> None:
    """Each byte is progress for a limit of silence."""
    made.settimeout(0.05)
    while True:
        made.sendall(byte)
        with suppress(TimeoutError):
            if not made.recv(1):
                return


@pytest.mark.parametrize("slowly", [_dripping_body, _dripping_headers, _continuing])
def test_the_whole_answer_has_a_deadline(
    serve: Serve, tmp_path: Path, slowly: Callable[[socket.socket], object]
) -> None:
    error = _failure(serve(slowly), tmp_path / "fetched", DownloadLimits(total_s=0.3))
    assert type(error) is ClusterUnreachable
    assert "did not end within 0.3 s" in str(error)


@pytest.mark.parametrize(
    "lines",
    [
        ("last_zxid: -0x5",),
        ("last_zxid: 0x" + "f" * 16,),
        ("last_zxid: 0x" + "1" * 5000,),
        ("last_zxid: 5_0",),
        ("last_zxid: \xb2",),
        ("last_zxid: 0x5", "snapshot_size: " + "9" * 5000),
        ("last_zxid: 0x5", "snapshot_size: -1"),
        ("last_zxid: 0x5", "snapshot_size: \xb2"),
        ("last_zxid: 0x5", "snapshot_size: many"),
    ],
)
def test_odd_headers_are_errors_with_a_remedy(serve: Serve, tmp_path: Path, lines: tuple[str, ...]) -> None:
    error = _failure(serve(lambda made: made.sendall(_headed(*lines) + b"short")), tmp_path / "fetched")
    assert type(error) in {ClusterError, InvalidAnswer}
    assert len(str(error)) < 300


@pytest.mark.parametrize("chunk", [b"-1\r\n", b"-5\r\n", b"f" * 60000 + b"\r\n", b"?\r\n"])
def test_chunks_of_impossible_sizes_use_no_memory(serve: Serve, tmp_path: Path, chunk: bytes) -> None:
    """Asked for bytes, http.client would read a chunk of -1 bytes to the end of the stream."""

    def answer(made: socket.socket) -> None:
        made.sendall(b"HTTP/1.1 200 OK\r\nlast_zxid: 0x5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk)
        for _ in range(200):
            made.sendall(_BLOCK)

    tracemalloc.start()
    try:
        assert isinstance(_failure(serve(answer), tmp_path / "fetched"), ClusterError | Damaged)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_small_file_that_unpacks_to_a_large_one_stops_at_the_limit(serve: Serve, tmp_path: Path) -> None:
    packed = gzip.compress(
        HEADER.pack(MAGIC, VERSION, DBID) + bytes(8) + b"\0\0\0\1x\x7f\xff\xff\xff" + bytes(64 << 20)
    )
    assert len(packed) < 100_000
    url = serve(lambda made: made.sendall(_headed("last_zxid: 0x5") + packed))
    server = AdminServer(url, limits=DownloadLimits(most_bytes=8 << 20))
    with pytest.raises(LogkeepError) as caught, fetched_snapshot(server, lambda _: None, scratch=tmp_path):
        pass
    assert "larger than 8388608 bytes" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("answer", "facts"),
    [
        (b"[" * 200_000, ("", "")),
        (b'{"version": "' + b"9" * 5000 + b'"}', ("", "")),
        (b'{"version": [3], "server_stats": {"server_state": ["leader"]}}', ("", "")),
        (b'{"version": "3.9.5-abc", "server_stats": {"server_state": "leader"}}', ("leader", "3.9.5")),
    ],
)
def test_facts_that_no_server_reports_are_unknown(serve: Serve, answer: bytes, facts: tuple[str, str]) -> None:
    assert server_facts(AdminServer(serve(lambda made: made.sendall(_headed() + answer)))) == facts


def test_an_honest_answer_is_stored(serve: Serve, tmp_path: Path) -> None:
    acls, rows = rows_of(new_tree(with_config=False))
    made_of = b"".join(exact_snapshot({}, acls, list(rows), zxid=5, digest=0))
    headed = _headed("last_zxid: 0x5", f"snapshot_size: {len(made_of)}")
    url = serve(lambda made: made.sendall(headed + made_of))
    assert download(AdminServer(url), tmp_path / "fetched", lambda _: None) == 5
    assert (tmp_path / "fetched").read_bytes() == made_of
    with pytest.raises(Damaged, match="bytes arrived instead of"):
        download(AdminServer(serve(lambda made: made.sendall(headed + b"x"))), tmp_path / "fetched", lambda _: None)
