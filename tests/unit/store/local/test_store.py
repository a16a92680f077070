"""What a directory does beyond the common promises: links, durability, leftovers, full and read-only disks."""

import mmap
import os
import pickle
import random
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logkeep.errors import ObjectMissing, StoreError, StoreLocationMissing, UnsafeName, VersionMismatch
from logkeep.store.local import stream as local_stream
from logkeep.store.local.root import PARTIAL
from logkeep.store.local.store import LocalStore

_LATER = timedelta(days=1)
_NOISE = mmap.mmap(-1, 16 << 20)
_NOISE[:] = random.Random(1).randbytes(16 << 20)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    made = LocalStore(tmp_path / "root")
    made.create()
    return made


def _partials(store: LocalStore) -> list[str]:
    directory = store.root / PARTIAL
    return (
        sorted(path.name for path in directory.iterdir() if path.name != "replace.lock") if directory.exists() else []
    )


class TestRoot:
    def test_is_made_only_when_asked(self, tmp_path: Path) -> None:
        store = LocalStore(tmp_path / "no" / "where")
        calls: tuple[Callable[[], object], ...] = (
            lambda: store.put_new("a", b""),
            lambda: store.open_new("a"),
            lambda: store.get("a", 1),
            lambda: list(store.list("")),
            lambda: store.delete("a"),
            lambda: store.stale_partials(datetime.now(UTC)),
        )
        for call in calls:
            with pytest.raises(StoreLocationMissing):
                call()
        store.create()
        store.create()
        assert stat.S_IMODE(store.root.stat().st_mode) == 0o700

    def test_a_file_in_its_place_is_told(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(StoreLocationMissing):
            LocalStore(tmp_path / "file").get("a", 1)


class TestFiles:
    def test_only_the_owner_may_read_them(self, store: LocalStore) -> None:
        store.put_new("a/b", b"x")
        writer = store.open_new("a/c")
        writer.write(b"x")
        writer.close()
        store.replace("a/b", b"y", store.head("a/b").version)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in store.root.rglob("*")}
        assert modes == {"a": 0o700, PARTIAL: 0o700, "b": 0o600, "c": 0o600, "replace.lock": 0o600}

    def test_the_stores_own_directory_is_no_place_for_objects(self, store: LocalStore) -> None:
        with pytest.raises(UnsafeName):
            store.put_new(f"{PARTIAL}/x", b"")
        assert list(store.list(f"{PARTIAL}/")) == []

    def test_a_version_differs_although_size_and_second_are_the_same(self, store: LocalStore) -> None:
        store.put_new("a", b"0")
        seen = {store.head("a").version}
        for number in range(200):
            store.replace("a", b"%d" % (number % 10), store.head("a").version)
            seen.add(store.head("a").version)
        assert len(seen) == 201

    def test_a_version_differs_after_delete_and_put(self, store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
        real = os.fstat
        monkeypatch.setattr(os, "fstat", lambda descriptor: _CoarseTime(real(descriptor)))
        store.put_new("a", b"0")
        old = store.head("a").version
        for _ in range(50):
            store.delete("a")
            store.put_new("a", b"0")
            with pytest.raises(VersionMismatch):
                store.replace("a", b"1", old)

    def test_a_copy_in_another_process_sees_the_same(self, store: LocalStore) -> None:
        store.put_new("d/a", b"x")
        copy = pickle.loads(pickle.dumps(store))  # noqa: S301  # our own bytes
        copy.put_new("d/e/b", b"y")
        assert copy.get("d/a", 1) + store.get("d/e/b", 1) == b"xy"


class _CoarseTime:
    """A file's status on a kernel whose clock ticks once an hour."""

    def __init__(self, status: os.stat_result) -> None:
        self._status = status
        self.st_mtime_ns = status.st_mtime_ns // 3_600_000_000_000 * 3_600_000_000_000

    def __getattr__(self, name: str) -> int:
        return int(getattr(self._status, name))


class TestHostileFiles:
    def test_a_link_is_not_read_and_not_listed(self, store: LocalStore, tmp_path: Path) -> None:
        (tmp_path / "secret").write_bytes(b"secret")
        (store.root / "link").symlink_to(tmp_path / "secret")
        for call in (lambda: store.get("link", 10), lambda: store.head("link"), lambda: store.get_range("link", 0, 1)):
            with pytest.raises(UnsafeName):
                call()
        foreign: list[str] = []
        assert list(store.list("", foreign=foreign)) == []
        assert foreign == ["link"]

    def test_a_linked_directory_is_not_entered(self, store: LocalStore, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "x").write_bytes(b"x")
        (store.root / "dir").symlink_to(outside)
        calls: tuple[Callable[[], object], ...] = (
            lambda: store.get("dir/x", 1),
            lambda: store.put_new("dir/y", b""),
            lambda: store.open_new("dir/y"),
            lambda: store.delete("dir/x"),
            lambda: list(store.list("dir/")),
        )
        for call in calls:
            with pytest.raises(UnsafeName):
                call()
        foreign: list[str] = []
        assert list(store.list("", foreign=foreign)) == []
        assert foreign == ["dir"]
        assert [path.name for path in outside.iterdir()] == ["x"]

    def test_a_link_in_place_of_the_private_directory_is_refused(self, store: LocalStore, tmp_path: Path) -> None:
        (store.root / PARTIAL).symlink_to(tmp_path)
        with pytest.raises(UnsafeName):
            store.put_new("a", b"x")

    def test_a_pipe_does_not_stop_a_reader(self, store: LocalStore) -> None:
        os.mkfifo(store.root / "pipe")
        with pytest.raises(UnsafeName):
            store.get("pipe", 1)

    def test_strange_names_are_told_and_do_not_stop_a_listing(self, store: LocalStore) -> None:
        store.put_new("good", b"")
        (store.root / "b d").write_bytes(b"")
        Path(os.fsdecode(os.fsencode(store.root) + b"/\xff")).write_bytes(b"")
        foreign: list[str] = []
        assert [info.name for info in store.list("", foreign=foreign)] == ["good"]
        assert sorted(foreign) == ["\\xff", "b d"]

    def test_a_file_is_not_a_directory_nor_the_other_way_round(self, store: LocalStore) -> None:
        store.put_new("a", b"")
        store.put_new("d/x", b"")
        with pytest.raises(ObjectMissing):
            store.get("a/b", 1)
        with pytest.raises(ObjectMissing):
            store.get("d", 1)
        with pytest.raises(UnsafeName):
            store.put_new("a/b", b"")
        store.delete("d")
        assert store.head("d/x").size == 0


class TestDurability:
    """The order of what reaches the disk, seen at the calls that make it so."""

    @pytest.fixture
    def steps(self, store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        steps: list[str] = []
        private = f"{PARTIAL}/file"

        def place(descriptor: int) -> str:
            path = str(Path(f"/proc/self/fd/{descriptor}").readlink().relative_to(store.root))
            return private if path.startswith(f"{PARTIAL}/") else path

        def sync(descriptor: int) -> None:
            steps.append(f"sync {place(descriptor)}")
            real["fsync"](descriptor)

        real = {name: getattr(os, name) for name in ("fsync", "link", "rename", "mkdir")}
        monkeypatch.setattr(os, "fsync", sync)
        for name in ("link", "rename", "mkdir"):

            def record(first: str, *rest: str, verb: str = name, **options: int) -> None:
                real[verb](first, *rest, **options)
                steps.append(f"{verb} {rest[0] if rest else first}")

            monkeypatch.setattr(os, name, record)
        return steps

    def test_put_new(self, store: LocalStore, steps: list[str]) -> None:
        store.put_new("a/b/c", b"x")
        _in_order(steps, "mkdir a", "sync .", "mkdir b", "sync a", f"sync {PARTIAL}/file", "link c", "sync a/b")

    def test_a_directory_made_by_another_process_is_synced_too(self, store: LocalStore, steps: list[str]) -> None:
        (store.root / "a").mkdir()
        steps.clear()
        store.put_new("a/c", b"x")
        _in_order(steps, "sync .", "link c", "sync a")
        steps.clear()
        store.put_new("a/d", b"x")
        assert steps == [f"sync {PARTIAL}/file", "link d", "sync a"]

    def test_stream(self, store: LocalStore, steps: list[str]) -> None:
        writer = store.open_new("a/c")
        writer.write(bytes(5 << 20))
        writer.close()
        _in_order(steps, f"sync {PARTIAL}/file", "link c", "sync a")

    def test_replace(self, store: LocalStore, steps: list[str]) -> None:
        store.put_new("a/c", b"x")
        steps.clear()
        store.replace("a/c", b"y", store.head("a/c").version)
        assert steps == [f"sync {PARTIAL}/file", "rename c", "sync a"]


def _in_order(steps: list[str], *expected: str) -> None:
    rest = iter(steps)
    assert all(step in rest for step in expected), steps


class TestStreams:
    @pytest.mark.parametrize("direct", (True, False))
    @pytest.mark.parametrize("size", (0, 1, 4095, 4096, 4097, 4 << 20, (4 << 20) + 1, (9 << 20) + 4096 + 5))
    def test_any_length_and_any_cut(
        self, store: LocalStore, size: int, direct: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not direct:
            monkeypatch.setattr(local_stream, "_create", _create_buffered)
        data = os.urandom(size)
        for number, step in enumerate((1 << 20, 4 << 20, 777_777)):
            writer = store.open_new(f"s{number}", size_hint=size + 10_000_000)
            for start in range(0, size, step):
                writer.write(data[start : start + step])
            assert writer.close() == size
            assert store.get(f"s{number}", size) == data
        assert _partials(store) == []

    def test_an_aligned_buffer_of_the_caller_is_written_as_it_is(self, store: LocalStore) -> None:
        buffer = mmap.mmap(-1, 8 << 20)
        buffer[:] = os.urandom(8 << 20)
        writer = store.open_new("s")
        with memoryview(buffer) as view:
            writer.write(view)
            writer.write(view[:10])
            writer.write(view)
        writer.close()
        assert store.get("s", 20 << 20) == buffer[:] + buffer[:10] + buffer[:]
        buffer.close()

    @pytest.mark.parametrize("direct", (True, False))
    @given(
        sizes=st.lists(st.sampled_from((1, 16, 4080, 4096, 5000, 300_000, (1 << 20) + 7)), max_size=8),
        place=st.sampled_from((0, 16, 4095)),
    )
    @settings(max_examples=40, deadline=None, suppress_health_check=(HealthCheck.function_scoped_fixture,))
    def test_bytes_that_lie_in_memory_as_they_will_in_the_file(
        self, store: LocalStore, direct: bool, sizes: list[int], place: int
    ) -> None:
        """`place` 0: within a page of memory every piece lies where it will lie in a page of the file."""
        with pytest.MonkeyPatch.context() as patched:
            if not direct:
                patched.setattr(local_stream, "_create", _create_buffered)
            writer, at = store.open_new("s"), place
            with memoryview(_NOISE) as noise:
                for size in sizes:
                    writer.write(noise[at : at + size])
                    at += size
            assert writer.close() == sum(sizes)
        assert store.get("s", 20 << 20) == _NOISE[place:at]
        store.delete("s")

    def test_a_short_write_leaves_the_rest(self) -> None:
        pieces = [memoryview(b"abc"), memoryview(b"defg")]
        left = [b"".join(local_stream._behind(pieces, written)) for written in range(8)]
        assert left == [b"abcdefg"[written:] for written in range(8)]

    def test_a_closed_or_aborted_stream_takes_nothing_more(self, store: LocalStore) -> None:
        writer = store.open_new("s")
        writer.abort()
        for call in (lambda: writer.write(b"x"), writer.close):
            with pytest.raises(StoreError):
                call()
        assert _partials(store) == []


def _create_buffered(leaf: str, directory: int) -> tuple[int, bool]:
    return os.open(leaf, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=directory), False


class TestLeftovers:
    def test_of_a_killed_writer_are_swept(self, store: LocalStore) -> None:
        script = f"""
            import os, signal
            from logkeep.store.local.store import LocalStore
            LocalStore({str(store.root)!r}).open_new("s").write(bytes(5 << 20))
            os.kill(os.getpid(), signal.SIGKILL)
        """
        killed = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert list(store.list("")) == []
        (left,) = _partials(store)
        now = datetime.now(UTC)
        assert store.stale_partials(now - _LATER) == []
        assert [info.name for info in store.stale_partials(now + _LATER)] == [f"{PARTIAL}/{left}"]
        assert store.sweep_partials(now + _LATER) == 1
        assert _partials(store) == []

    def test_of_a_living_writer_are_kept_however_old(self, store: LocalStore) -> None:
        writer = store.open_new("s")
        writer.write(b"x")
        assert store.sweep_partials(datetime.now(UTC) + _LATER) == 0
        writer.close()
        assert store.get("s", 1) == b"x"

    def test_the_lock_of_replace_is_no_leftover(self, store: LocalStore) -> None:
        store.put_new("a", b"x")
        store.replace("a", b"y", store.head("a").version)
        assert store.sweep_partials(datetime.now(UTC) + _LATER) == 0


def _in_small_disk(tmp_path: Path, script: str) -> None:
    """Run a script on a real file system of 1 MiB, mounted where only the script sees it; needs no root."""
    (tmp_path / "disk").mkdir()
    prelude = f"""
        from logkeep.errors import StoreDenied, StoreFull
        from logkeep.store.local.store import LocalStore
        import subprocess, pytest
        store = LocalStore({str(tmp_path / "disk")!r})
    """
    code = textwrap.dedent(prelude) + textwrap.dedent(script)
    mount = 'mount -t tmpfs -o size=1m tmpfs "$1" && exec "$2" -c "$3"'
    command = ["unshare", "-rm", "sh", "-ec", mount, "sh", str(tmp_path / "disk"), sys.executable, code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    _in_small_disk(
        tmp_path,
        """
        store.put_new("kept", b"x")
        with pytest.raises(StoreFull):
            store.put_new("large", bytes(2 << 20))
        for hint in (0, 2 << 20):
            writer = None
            with pytest.raises(StoreFull):
                writer = store.open_new("stream", hint)
                for _ in range(8):
                    writer.write(bytes(1 << 20))
                writer.close()
            if writer is not None:
                with pytest.raises(Exception, match="."):
                    writer.close()
                writer.abort()
        assert [info.name for info in store.list("")] == ["kept"]
        assert list((store.root / ".partial").iterdir()) == []
        store.put_new("again", bytes(500_000))
        """,
    )


def test_a_read_only_disk_is_told(tmp_path: Path) -> None:
    _in_small_disk(
        tmp_path,
        """
        store.put_new("a", b"x")
        subprocess.run(["mount", "-o", "remount,ro", str(store.root)], check=True)
        version = store.head("a").version
        for write in (
            lambda: store.put_new("b", b""), lambda: store.open_new("b"),
            lambda: store.replace("a", b"", version), lambda: store.delete("a"),
        ):
            with pytest.raises(StoreDenied):
                write()
        assert store.get("a", 1) == b"x"
        """,
    )
