"""Log directories of stopped brokers: locked while they are read, and listed with their small files.

A running broker has an exclusive lock on `.lock` in each of its directories: then a shared lock on it fails, and the
command refuses to run. While this process has a shared lock, no broker starts on the directory. The lock belongs to
the open file, not to the process: several holders in one process do not release it for each other. Nothing is ever
written: files are opened only for reading.
"""

import fcntl
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from logkeep.errors import LogDirUnusable
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.disks.layout import (
    METADATA_TOPIC,
    Identity,
    LogDirectory,
    LogDirState,
    epochs_checkpoint,
    identity,
    log_directory,
    offsets_checkpoint,
    topic_id,
)
from logkeep.kafka.disks.scan_results import DiskCopy
from logkeep.kafka.disks.segment_windows import opened
from logkeep.model.findings import Finding, Severity

_SMALL_FILE = 64 << 20
_SHARED = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)


@dataclass(frozen=True)
class FoundCopy:
    """One directory of one log."""

    copy: DiskCopy
    log: TopicPartition
    state: LogDirState
    topic_id: UUID | None
    high_watermark: int
    """The high watermark in the checkpoint file, a lower bound; -1 if there is none."""


@dataclass(frozen=True)
class LogDirectories:
    """What log directories hold, from names and small files alone."""

    cluster_id: str
    nodes: frozenset[int]
    copies: tuple[FoundCopy, ...]
    metadata_logs: tuple[str, ...]
    findings: tuple[Finding, ...]


@contextmanager
def hold_directories(roots: Sequence[Path]) -> Iterator[None]:
    """Keep brokers from starting on these directories. Raises LogDirUnusable if one runs."""
    with ExitStack() as stack:
        for root in roots:
            lock = root / ".lock"
            if lock.exists():
                file = stack.enter_context(opened(lock))
                if not share_lock(file):
                    raise LogDirUnusable(
                        "a running broker holds it",
                        subject=str(root),
                        remedy="stop the broker (kafka-server-stop.sh), or back up the cluster with `kafka backup`",
                    )
        yield


def share_lock(file: int) -> bool:
    """Take the shared lock of an open `.lock`; it is released when the file is closed. False if a broker has it."""
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, _SHARED)
    except OSError:
        return False
    return True


def list_directories(roots: Sequence[Path]) -> LogDirectories:
    """What these directories hold. Raises LogDirUnusable, also if they belong to more than one cluster."""
    identities = [_identity(root) for root in roots]
    clusters = {each.cluster_id: root for each, root in zip(identities, roots, strict=True)}
    if len(clusters) > 1:
        owners = ", ".join(f"{root} to {cluster}" for cluster, root in sorted(clusters.items()))
        raise LogDirUnusable(
            f"they belong to several clusters: {owners}", remedy="salvage one cluster at a time, each as its own source"
        )
    findings: list[Finding] = []
    copies = [copy for each, root in zip(identities, roots, strict=True) for copy in _copies(root, each, findings)]
    metadata = [str(root / f"{METADATA_TOPIC}-0") for root in roots if (root / f"{METADATA_TOPIC}-0").is_dir()]
    nodes = frozenset(each.node for each in identities)
    return LogDirectories(identities[0].cluster_id, nodes, tuple(copies), tuple(metadata), tuple(findings))


def _identity(root: Path) -> Identity:
    if not root.exists():
        raise LogDirUnusable("there is no such directory", subject=str(root))
    found = identity(_text(root / "meta.properties") or "") if root.is_dir() else None
    if found is None:
        raise LogDirUnusable(
            "is no log directory of a broker: it has no meta.properties",
            subject=str(root),
            remedy="name the directories of `log.dirs`; if only that file is lost, copy it from another log "
            "directory of the same broker, or write one with the lines version=1, cluster.id=… and node.id=…",
        )
    return found


def checkpointed_starts(roots: Iterable[Path]) -> dict[TopicPartition, int]:
    """Log starts in the brokers' checkpoint files: those after the first offset of the first segment."""
    found: dict[TopicPartition, int] = {}
    for root in roots:
        found |= _checkpoint(root / "log-start-offset-checkpoint", [])
    return found


def _copies(root: Path, who: Identity, findings: list[Finding]) -> Iterator[FoundCopy]:
    watermarks = _checkpoint(root / "replication-offset-checkpoint", findings)
    starts = _checkpoint(root / "log-start-offset-checkpoint", findings)
    for name in _names(root):
        found = log_directory(name)
        if found is not None and (root / name).is_dir():
            yield _copy(root, who, found, watermarks, starts)


def _copy(
    root: Path,
    who: Identity,
    found: LogDirectory,
    watermarks: dict[TopicPartition, int],
    starts: dict[TopicPartition, int],
) -> FoundCopy:
    directory = root / found.name
    epochs = epochs_checkpoint(_text(directory / "leader-epoch-checkpoint") or "")
    names = _names(directory)
    copy = DiskCopy(
        directory=str(directory),
        node=who.node,
        start=max(starts.get(found.log, 0), 0),
        epochs=epochs or (),
        size_bytes=sum((directory / n).stat().st_size for n in names if n.endswith((".log", ".log.swap"))),
    )
    known = topic_id(_text(directory / "partition.metadata") or "")
    return FoundCopy(copy, found.log, found.state, known, watermarks.get(found.log, -1))


def _checkpoint(path: Path, findings: list[Finding]) -> dict[TopicPartition, int]:
    text = _text(path)
    found = offsets_checkpoint(text) if text else {}  # a broker creates the file first and fills it later
    if found is None:
        what = "it cannot be read, and counts as missing"
        findings.append(Finding(code="checkpoint-damaged", severity=Severity.WARNING, where=str(path), what=what))
    return found or {}


def _names(directory: Path) -> Sequence[str]:
    try:
        return sorted(entry.name for entry in directory.iterdir())
    except OSError as error:
        raise LogDirUnusable(f"cannot be listed ({error.strerror})", subject=str(directory)) from error


def _text(path: Path) -> str | None:
    """A small file; None if it does not exist."""
    if not path.exists():
        return None
    with opened(path) as file:
        return os.pread(file, _SMALL_FILE, 0).decode(errors="replace")


def log_dirs(texts: Iterable[str]) -> tuple[Path, ...]:
    """Directories as a user writes them, repeated or with commas as in `log.dirs`; each once."""
    names = [part.strip() for text in texts for part in text.split(",")]
    return tuple(dict.fromkeys(Path(name).absolute() for name in names if name))
