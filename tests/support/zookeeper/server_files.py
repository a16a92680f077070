"""The files that a real server wrote, all of them, in their order."""

from collections.abc import Iterator
from pathlib import Path

from logkeep.errors import Damaged
from logkeep.formats.zookeeper import txnlog
from logkeep.formats.zookeeper.compression import opened
from logkeep.formats.zookeeper.names import FileKind, parse_name
from logkeep.formats.zookeeper.snapshot import SnapshotReader, SnapshotTail
from logkeep.zookeeper.model.tree import Tree, tree_of


def logs(log_dir: Path) -> list[Path]:
    return _named(log_dir, FileKind.LOG)


def snapshots(data_dir: Path) -> list[Path]:
    return _named(data_dir, FileKind.SNAPSHOT)


def _named(directory: Path, kind: FileKind) -> list[Path]:
    """By zxid."""
    parsed = [(parse_name(path.name), path) for path in (directory / "version-2").iterdir()]
    return [path for _, path in sorted((name.zxid, path) for name, path in parsed if name and name.kind is kind)]


def bodies(log_dir: Path) -> Iterator[bytes]:
    """Of all records of all logs, in their order."""
    for path in logs(log_dir):
        yield from bodies_of(path)


def bodies_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as log:
        yield from txnlog.bodies(log)


def whole_snapshots(data_dir: Path, *, most_cut: int) -> Iterator[tuple[str, Tree, SnapshotTail]]:
    """Those that the server could finish: each end of a server may have cut one."""
    cut = 0
    for path in snapshots(data_dir):
        try:
            tree, ending = loaded(path)
        except Damaged:
            cut += 1
            continue
        yield path.name, tree, ending
    assert cut <= most_cut, "snapshots cannot be read that were finished"


def loaded(path: Path) -> tuple[Tree, SnapshotTail]:
    """The raw tree of a snapshot, fuzzy as it may be, and what stands behind it; every seal was compared."""
    name = parse_name(path.name)
    assert name is not None
    with opened(path.open("rb"), name.packing) as plain:
        reader = SnapshotReader(plain)
        tree = tree_of(reader.sessions(), reader.acls(), reader.nodes())
        ending = reader.ending()
    tree.zxid = name.zxid
    return tree, ending
