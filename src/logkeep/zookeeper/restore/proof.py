"""Proof of staged files: read back from the disk, compare the bytes; of a snapshot check sums, nodes and digest."""

import hashlib
import os
from typing import BinaryIO

from logkeep.directories.folder import Folder
from logkeep.errors import Damaged
from logkeep.formats.zookeeper.names import FileKind, parse_name
from logkeep.formats.zookeeper.snapshot import SnapshotReader
from logkeep.model.plurals import plural
from logkeep.zookeeper.restore.values import Form, RestoredServerFile, ZooKeeperRestorePlan

_PIECE_BYTES = 1 << 20


def prove(folder: Folder, expected: RestoredServerFile, planned: ZooKeeperRestorePlan, digest: int | None) -> str:
    """What is wrong with the file; empty when nothing is."""
    try:
        with os.fdopen(folder.open_file(expected.name), "rb") as file:
            problem = _compare_bytes(file, expected)
            file.seek(0)
            return problem or _check_snapshot(file, expected.name, planned, digest)
    except OSError as error:
        return (error.strerror or "it cannot be read").lower()
    except Damaged as error:
        return str(error)


def _compare_bytes(file: BinaryIO, expected: RestoredServerFile) -> str:
    found = hashlib.sha256()
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # read from the disk, not from the page cache
    while piece := file.read(_PIECE_BYTES):
        found.update(piece)
    return "" if found.hexdigest() == expected.sha256 else "other bytes"


def _check_snapshot(file: BinaryIO, written: str, planned: ZooKeeperRestorePlan, digest: int | None) -> str:
    name = parse_name(written)
    if planned.form is not Form.EXACT or name is None or name.kind is not FileKind.SNAPSHOT:
        return ""
    reader = SnapshotReader(file)
    reader.sessions()
    reader.acls()
    nodes = sum(1 for _ in reader.nodes())
    ending = reader.ending()
    if nodes != planned.nodes:
        return f"{plural(nodes, 'node')} instead of {planned.nodes}"
    digest_zxid = 0 if digest is None else planned.named
    return "" if (ending.digest_zxid, ending.digest) == (digest_zxid, digest) else "another digest"
