"""Offline restores by the product's own steps, and directories of brokers that were made by hand."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid5

import google_crc32c

from logkeep.engine.inline import InlineEngine
from logkeep.formats.kafka.batches import walk
from logkeep.kafka.offline_restore.run import restore_offline
from logkeep.kafka.offline_restore.values import OfflineReport, OfflineRestoreOptions
from logkeep.kafka.restore.plan.selection import RestoreSelection
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef
from tests.support.kafka.broker_disks import made_disk
from tests.support.kafka.salvage_steps import salvaged
from tests.support.kafka.whole_backups import new_place

TARGET_ID = UUID("00000000-0000-4000-8000-0000000000bb")
METADATA = "partition.metadata"


def offline(place: SourceRef, backup: int, roots: Sequence[Path], **wish: object) -> OfflineReport:
    """A restore in this process."""
    return restore_offline(wished(backup, roots, **wish), place, InlineEngine(), utc_now, random_token)


def wished(backup: int, roots: Sequence[Path], **wish: object) -> OfflineRestoreOptions:
    """Fields of the wish, or of the choice in it."""
    names = RestoreSelection.__dataclass_fields__.keys()
    choice = RestoreSelection(**{name: wish.pop(name) for name in [*wish] if name in names})  # type: ignore[arg-type]  # a test's own
    return OfflineRestoreOptions(backup=BackupId(backup), roots=tuple(roots), selection=choice, **wish)  # type: ignore[arg-type]  # the same


@dataclass(frozen=True)
class Backed:
    """A backup of logs that were written by hand."""

    place: SourceRef
    backup: int


def backed_up(directory: Path, logs: Mapping[str, Sequence[bytes]]) -> Backed:
    """Each log is batches back to back; they are salvaged from a disk, named after their first offset."""
    disk = made_disk(directory / "source")
    for name, batches in logs.items():
        where = disk / name
        where.mkdir()
        (where / METADATA).write_text(_metadata(uuid5(TARGET_ID, name.rpartition("-")[0])))
        first = int(walk(batches[0]).batches.base_offsets[0]) if batches else 0
        (where / f"{first:020d}.log").write_bytes(b"".join(batches))
    place = new_place(directory / "repository")
    done = salvaged(place, [disk])[1]
    assert done.entry is not None
    return Backed(place, done.entry.id)


def made_target(root: Path, names: Iterable[str]) -> Path:
    """A broker's directory with empty partitions, as it leaves them when it is stopped."""
    made_disk(root, cluster="another-cluster-------")
    for name in names:
        where = root / name
        where.mkdir()
        (where / METADATA).write_text(_metadata(TARGET_ID))
        for suffix in ("log", "index", "timeindex"):
            (where / f"{0:020d}.{suffix}").touch()
        (where / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    return root


def _metadata(topic_id: UUID) -> str:
    return f"version: 0\ntopic_id: {base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip('=')}\n"


def tree(root: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def logs_in(directory: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(directory.glob("*.log"))}


def labelled(batch: bytes, producer: int) -> bytes:
    """What a batch must be in another cluster, put together by hand: leader epoch 0, another producer, its CRC."""

    changed = bytearray(batch)
    changed[12:16] = bytes(4)
    changed[43:51] = producer.to_bytes(8, "big", signed=True)
    changed[17:21] = google_crc32c.value(bytes(changed[21:])).to_bytes(4, "big")
    return bytes(changed)


def archived_as(batch: bytes) -> bytes:
    """An archived batch as it must stand in the restored file; ids are moved by 2**62."""
    producer = int.from_bytes(batch[43:51], "big", signed=True)
    return labelled(batch, producer + 2**62 if producer >= 0 else producer)
