"""Whole backups of one server into a bundle: against reading, hashing and writing the same bytes; memory."""

import hashlib
import itertools
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.zookeeper_files import PAYLOADS, Workload, set_data_bodies, write_log
from logkeep.engine.inline import InlineEngine
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.formats.zookeeper.txnlog import scan
from logkeep.model.segments import Codec
from logkeep.model.time import random_token, utc_now
from logkeep.store.local.store import LocalStore
from logkeep.zookeeper.backup.rounds import RoundSettings
from logkeep.zookeeper.backup.run import ZooKeeperBackupOptions, back_up
from logkeep.zookeeper.backup.server_files import MemberPlace
from logkeep.zookeeper.bundle.writer import new_bundle
from logkeep.zookeeper.model.tree import new_tree, rows_of
from logkeep.zookeeper.server.four_letter import ServerState

_PIECE_BYTES = 4 << 20
_NEVER = 1 << 31
_PEAK = """
import io, sys
import pyarrow
from pathlib import Path
from benchmarks.zookeeper_files import peak_mb
from benchmarks.zookeeper_backup import backed_up
from logkeep.formats.jit import compile_from_now_on
from logkeep.formats.zookeeper.txnlog import header, scan
from logkeep.model.segments import Codec
compile_from_now_on()
scan(io.BytesIO(header()))
before = peak_mb()
backed_up(Path(sys.argv[1]), Path(sys.argv[2]), Codec(sys.argv[3]))
print(round(before), round(peak_mb()))
"""


def measure(workload: Workload) -> None:
    out = workload.folder / "bundles"
    for label, payload in PAYLOADS.items():
        _speeds(label, workload, directory(workload, workload.log(payload), label.replace(" ", "")), out)
    _memory(workload, out)


def directory(workload: Workload, log: Path, name: str) -> Path:
    """A server's directory with one log and the snapshot of an empty tree."""
    made = workload.folder / f"server-{name}" / "version-2"
    made.mkdir(parents=True)
    (made / "log.1").hardlink_to(log)
    acls, rows = rows_of(new_tree(with_config=False))
    (made / "snapshot.0").write_bytes(b"".join(exact_snapshot({}, acls, rows, zxid=0, digest=None)))
    return made


def backed_up(made: Path, out: Path, codec: Codec) -> None:
    """One backup, which is removed again."""
    engine = InlineEngine()
    rounds = RoundSettings(lambda _: engine, lambda _: ServerState(_NEVER, "standalone", "3.9.5"), timeout_s=0.0)
    with new_bundle(out, None, clock=utc_now, tokens=random_token, codec=codec) as sink:
        back_up(
            ZooKeeperBackupOptions((MemberPlace("standalone", made, made, "benchmark"),)),
            sink,
            rounds,
            lambda _, word: word,
        )
    shutil.rmtree(sink.path)


def _speeds(label: str, workload: Workload, made: Path, out: Path) -> None:
    with (made / "log.1").open("rb") as source:
        used = scan(source).size_bytes
    plain = workload.folder / "plain"
    with (made / "log.1").open("rb") as source, plain.open("wb") as target:
        target.write(source.read(used))
    bare = workload.best(lambda: _plain_copy(plain, workload.folder / "bare"))
    print(f"  {label:6}{'read + sha256 + write':24}{bare:8.2f} s {used / bare / 1e6:9,.0f} MB/s")
    for codec in Codec:
        took = workload.best(lambda: backed_up(made, out, codec))  # noqa: B023 - called at once
        print(f"  {label:6}backup, {codec:16}{took:8.2f} s {used / took / 1e6:9,.0f} MB/s {bare / took:6.2f} x")


def _plain_copy(source: Path, target: Path) -> None:
    """Into the same kind of stream, synced as a backup is: the peer must not be let off the disk."""
    store, digest = LocalStore(target), hashlib.sha256()
    store.create()
    stream = store.open_new("copy")
    with source.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
            stream.write(piece)
    stream.close()
    shutil.rmtree(target)


def _memory(workload: Workload, out: Path) -> None:
    log = workload.folder / "log.large"
    write_log(log, itertools.islice(set_data_bodies(900_000), max(workload.large_bytes // 900_000, 1)))
    large = directory(workload, log, "large")
    for codec in Codec:
        command = [sys.executable, "-c", _PEAK, str(large), str(out), codec]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        before, peak = map(int, done.stdout.split())
        label = f"{workload.large_bytes / 1e9:.1f} GB of 900 kB payloads, {codec}"
        print(f"  {label}: peak {peak - before} MB above the interpreter with its libraries, which is {before} MB")
    log.unlink()
    (large / "log.1").unlink()
