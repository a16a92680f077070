"""Have a real server write golden files: `python -m tests.golden.make_zookeeper 3.9.5 [no-digests]`.

Three starts of one server, with a little of everything in between. Since 3.5 a snapshot is taken at each start, the
later ones packed where the version can; 3.4 is told to take one after a hundred transactions or less. At the end an
independent client writes down what it sees. Refuses to overwrite: what a server wrote once is never written again.
"""

import json
import os
import sys
import tarfile
import tempfile
from pathlib import Path

from logkeep.embedded.zookeeper import EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.model.cache import cache_dir
from tests.support.zookeeper import raw_client as raw
from tests.support.zookeeper.load_operations import Operations
from tests.support.zookeeper.tree_recorder import Recording, record

HERE = Path(__file__).parent / "zookeeper"
_OPERATIONS = 150
_PACKINGS = ("", "gz", "snappy")
_ALLOCATED_KIB = 16


def main(version: str, *flags: str) -> None:
    target = HERE / f"{'-'.join((version, *flags))}.tar.xz"
    if target.exists():
        sys.exit(f"{target} exists and is never written again")
    with tempfile.TemporaryDirectory() as scratch:
        data_dir = Path(scratch) / "data"
        recording = _filled(Path(scratch), data_dir, ZooKeeperRelease(version), digests=not flags)
        told = Path(scratch) / "recorded.json"
        told.write_text(_as_json(recording), encoding="utf-8")
        target.parent.mkdir(exist_ok=True)
        with tarfile.open(target, "w:xz", format=tarfile.PAX_FORMAT) as tar:
            for path in sorted((data_dir / "version-2").iterdir()):
                tar.add(path, path.name, filter=_anonymous)
            tar.add(told, told.name, filter=_anonymous)


def _filled(directory: Path, data_dir: Path, release: ZooKeeperRelease, *, digests: bool) -> Recording:
    cache = cache_dir(os.environ, Path.home())
    options = ["-Xmx128m", f"-Dzookeeper.preAllocSize={_ALLOCATED_KIB}"]
    options += ["-Dzookeeper.snapCount=100"] if release.line < (3, 5) else []
    options += [] if digests else ["-Dzookeeper.digest.enabled=false"]
    for number, packing in enumerate(_PACKINGS):
        packed = [f"-Dzookeeper.snapshot.compression.method={packing}"] if packing and release.line >= (3, 6) else []
        server = EmbeddedZooKeeper(
            directory, cache, release=release, data_dir=data_dir, java_options=[*options, *packed]
        )
        with server:
            _work(server, release, number)
            recording = record(server.client, server.password)
    return recording


def _work(server: EmbeddedZooKeeper, release: ZooKeeperRelease, seed: int) -> None:
    operations = Operations(f"/golden-{seed}-ключ", seed, release.line, payload_bytes=20)
    with raw.RawSession(server.client, password=server.password) as first:
        first.must(*operations.first())
        first.do(*(operations.next_op() for _ in range(_OPERATIONS)))
        with raw.RawSession(server.client) as second:
            second.must(raw.create(f"/short-lived-{seed}", b"gone with its session", flags=raw.EPHEMERAL))
            second.do(raw.create(f"/e{seed}x", None, flags=raw.EPHEMERAL))


def _as_json(recording: Recording) -> str:
    nodes = {
        path: [None if seen.data is None else seen.data.hex(), *seen[1:]] for path, seen in recording.nodes.items()
    }
    return json.dumps({"zxid": recording.zxid, "nodes": nodes}, ensure_ascii=False, indent=0)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    main(*sys.argv[1:])
