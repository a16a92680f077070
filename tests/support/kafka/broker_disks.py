"""Log directories of brokers made by hand: batches in, files out."""

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import UUID

from logkeep.kafka.client.topology import TopicPartition
from tests.support.kafka.handmade_batches import Batch, dense

ID = UUID("00000000-0000-4000-8000-0000000000aa")
CLUSTER = "cluster-of-the-tests--"


def made_disk(root: Path, node: int = 1, cluster: str = CLUSTER, **checkpoints: Mapping[TopicPartition, int]) -> Path:
    """An empty log directory; `watermarks` and `starts` become checkpoint files."""
    root.mkdir(parents=True)
    (root / "meta.properties").write_text(f"#\nversion=1\nnode.id={node}\ncluster.id={cluster}\n")
    (root / ".lock").touch()
    names = {"watermarks": "replication-offset-checkpoint", "starts": "log-start-offset-checkpoint"}
    for kind, entries in checkpoints.items():
        lines = [f"{log.topic} {log.partition} {offset}" for log, offset in entries.items()]
        (root / names[kind]).write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    return root


def add_log(root: Path, name: str, segments: Sequence[Sequence[Batch]], topic_id: UUID | None = ID) -> Path:
    """A directory of a log with one file for each list of batches, named after its first."""
    directory = root / name
    directory.mkdir()
    if topic_id is not None:
        text = base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
        (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {text}\n")
    for batches in segments:
        (directory / f"{batches[0].base:020d}.log").write_bytes(b"".join(b.encode() for b in batches))
    return directory


def run_of(start: int, end: int, epoch: int = 0, size: int = 5) -> list[Batch]:
    """Dense batches of five records."""
    return [dense(base, min(size, end - base), epoch=epoch) for base in range(start, end, size)]


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)
