"""The directories of dead brokers: held against a start while they are read, and listed with their small files.

A broker locks `.lock` in each of its directories. As long as we hold that lock shared, no broker starts on them; and
where a running broker has it, we do not get it and refuse. Nothing is ever written: files are opened to be read.
"""

import os
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
from logkeep.kafka.disks.locks import share
from logkeep.kafka.disks.scan_results import Copy
from logkeep.kafka.disks.segment_windows import opened
from logkeep.model.findings import Finding, Severity

_SMALL_FILE = 64 << 20


@dataclass(frozen=True)
class FoundCopy:
    """One directory of one log."""

    copy: Copy
    log: TopicPartition
    standing: LogDirState
    topic_id: UUID | None
    high_watermark: int
    """The checkpoint's: a lower bound; -1 where there is none."""


@dataclass(frozen=True)
class Disks:
    """Everything that lies in the directories, as far as names and small files tell."""

    cluster_id: str
    nodes: frozenset[int]
    copies: tuple[FoundCopy, ...]
    metadata_logs: tuple[str, ...]
    findings: tuple[Finding, ...]


@contextmanager
def held(roots: Sequence[Path]) -> Iterator[None]:
    """Keep brokers from starting on these directories. Raises LogDirUnusable where one runs."""
    with ExitStack() as stack:
        for root in roots:
            lock = root / ".lock"
            if lock.exists():
                file = stack.enter_context(opened(lock))
                if not share(file):
                    raise LogDirUnusable(
                        "a running broker holds it",
                        subject=str(root),
                        remedy="stop the broker (kafka-server-stop.sh), or back up the cluster with `kafka backup`",
                    )
        yield


def look(roots: Sequence[Path]) -> Disks:
    """List the directories. Raises LogDirUnusable, also when they belong to more than one cluster."""
    identities = [_identity(root) for root in roots]
    clusters = {each.cluster_id: root for each, root in zip(identities, roots, strict=True)}
    if len(clusters) > 1:
        told = ", ".join(f"{root} to {cluster}" for cluster, root in sorted(clusters.items()))
        raise LogDirUnusable(
            f"they belong to several clusters: {told}", remedy="salvage one cluster at a time, each as its own source"
        )
    findings: list[Finding] = []
    copies = [copy for each, root in zip(identities, roots, strict=True) for copy in _copies(root, each, findings)]
    metadata = [str(root / f"{METADATA_TOPIC}-0") for root in roots if (root / f"{METADATA_TOPIC}-0").is_dir()]
    nodes = frozenset(each.node for each in identities)
    return Disks(identities[0].cluster_id, nodes, tuple(copies), tuple(metadata), tuple(findings))


def _identity(root: Path) -> Identity:
    if not root.exists():
        raise LogDirUnusable("there is no such directory", subject=str(root))
    found = identity(_text(root / "meta.properties") or "") if root.is_dir() else None
    if found is None:
        raise LogDirUnusable(
            "is no log directory of a broker: it has no meta.properties",
            subject=str(root),
            remedy="name the directories of `log.dirs`; where only that file is lost, copy it from another log "
            "directory of the same broker, or write one with the lines version=1, cluster.id=… and node.id=…",
        )
    return found


def remembered_starts(roots: Iterable[Path]) -> dict[TopicPartition, int]:
    """Log starts that a broker remembers, where they lie behind the first segment of a log."""
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
    copy = Copy(
        directory=str(directory),
        node=who.node,
        start=max(starts.get(found.log, 0), 0),
        epochs=epochs or (),
        size_bytes=sum((directory / n).stat().st_size for n in names if n.endswith((".log", ".log.swap"))),
    )
    known = topic_id(_text(directory / "partition.metadata") or "")
    return FoundCopy(copy, found.log, found.standing, known, watermarks.get(found.log, -1))


def _checkpoint(path: Path, findings: list[Finding]) -> dict[TopicPartition, int]:
    text = _text(path)
    found = offsets_checkpoint(text) if text else {}  # a broker makes the file first and fills it later
    if found is None:
        findings.append(_finding("checkpoint-damaged", path, "it cannot be read, and counts as missing"))
    return found or {}


def _names(directory: Path) -> Sequence[str]:
    try:
        return sorted(entry.name for entry in directory.iterdir())
    except OSError as error:
        raise LogDirUnusable(f"cannot be listed ({error.strerror})", subject=str(directory)) from error


def _text(path: Path) -> str | None:
    """A small file; None when it is not there."""
    if not path.exists():
        return None
    with opened(path) as file:
        return os.pread(file, _SMALL_FILE, 0).decode(errors="replace")


def _finding(code: str, where: Path, what: str) -> Finding:
    return Finding(code=code, severity=Severity.WARNING, where=str(where), what=what)


def log_dirs(texts: Iterable[str]) -> tuple[Path, ...]:
    """As a user writes them: repeated, or with commas as in `log.dirs`; each once."""
    names = [part.strip() for text in texts for part in text.split(",")]
    return tuple(dict.fromkeys(Path(name).absolute() for name in names if name))
