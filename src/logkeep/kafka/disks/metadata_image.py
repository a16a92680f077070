"""Topics, configs, ACLs and quotas of a cluster, from its metadata log on disk: a snapshot and the records after it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import CONTROL, first_broken
from logkeep.formats.kafka.internal_topics import metadata_records as records
from logkeep.formats.kafka.plain_records import records_of
from logkeep.kafka.disks.scan import segments_in
from logkeep.kafka.disks.segment_windows import windows

T = TypeVar("T")
_SNAPSHOT = re.compile(r"(?P<end>\d{20})-\d{10}\.checkpoint")


@dataclass
class ClusterImage:
    """The state of the cluster, built record by record."""

    topics: dict[str, UUID] = field(default_factory=dict)
    replicas: dict[UUID, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    acls: dict[UUID, records.AclMade] = field(default_factory=dict)
    quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = field(default_factory=dict)
    end: int = 0
    """The offset after the last record that was read."""
    _waiting: list[records.Change] | None = None

    def take(self, change: records.Change) -> None:
        """Apply one record; those of a transaction wait for its end."""
        if isinstance(change, records.TransactionStep):
            waiting, self._waiting = (
                self._waiting or [],
                [] if change.kind is records.MetadataRecordType.BEGIN_TRANSACTION else None,
            )
            for each in waiting if change.kind is records.MetadataRecordType.END_TRANSACTION else ():
                self._apply(each)
        elif self._waiting is not None:
            self._waiting.append(change)
        else:
            self._apply(change)

    def _apply(self, change: records.Change) -> None:
        match change:
            case records.TopicMade():
                self.topics[change.name] = change.id
            case records.TopicRemoved():
                self._forget(change.id)
            case records.ReplicasSet():
                self.replicas.setdefault(change.topic_id, {})[change.partition] = change.replicas
            case records.TopicConfigSet():
                _set(self.configs.setdefault(change.topic, {}), change.name, change.value)
            case records.QuotaSet():
                _set(self.quotas.setdefault(change.entity, {}), change.key, change.limit)
            case records.AclMade():
                self.acls[change.id] = change
            case records.AclRemoved():
                self.acls.pop(change.id, None)

    def _forget(self, topic_id: UUID) -> None:
        self.replicas.pop(topic_id, None)
        for name in [n for n, each in self.topics.items() if each == topic_id]:
            del self.topics[name]
            self.configs.pop(name, None)

    def replicas_of(self, topic: str, partition: int) -> tuple[int, ...]:
        """The brokers with a replica of a partition; empty if not known."""
        known = self.topics.get(topic)
        return self.replicas.get(known, {}).get(partition, ()) if known else ()

    def compacted(self, topic: str) -> bool:
        return "compact" in self.configs.get(topic, {}).get("cleanup.policy", "delete")

    def tiered(self, topic: str) -> bool:
        """Whether parts of its logs may be in remote storage."""
        return self.configs.get(topic, {}).get("remote.storage.enable") == "true"


def _set(where: dict[str, T], name: str, value: T | None) -> None:
    if value is None:
        where.pop(name, None)
    else:
        where[name] = value


def newest_image(directories: Sequence[str]) -> tuple[ClusterImage | None, list[str]]:
    """The image of the longest copy of the metadata log, and the problems of damaged copies."""
    found, problems = list[ClusterImage](), list[str]()
    for directory in directories:
        try:
            found.append(read_image(Path(directory)))
        except Damaged as error:
            problems.append(f"{directory}: {error.what}")
    return max(found, key=lambda image: image.end, default=None), problems


def read_image(directory: Path) -> ClusterImage:
    """The image from one copy of the metadata log. Raises Damaged if there is a gap between the newest snapshot and the
    log, or if a record cannot be read."""
    image, files = ClusterImage(), segments_in(directory).taken
    snapshots = sorted((int(m["end"]), p) for p in directory.iterdir() if (m := _SNAPSHOT.fullmatch(p.name)))
    if snapshots:
        end, newest = snapshots[-1]
        _read(image, [newest])
        image.end = end
    if files and files[0].base > image.end:
        raise Damaged(f"its log begins at {files[0].base}, and the newest snapshot ends at {image.end}")
    _read(image, [directory / f.name for f in files], from_offset=image.end)
    return image


def _read(image: ClusterImage, paths: Iterable[Path], from_offset: int = 0) -> None:
    for path in paths:
        for base, attributes, count, data in _batches(path):
            if base < from_offset:
                continue
            image.end = base + count
            if not attributes & CONTROL:
                for record in records_of(data, base, attributes, count):
                    if record.value is not None:
                        image.take(records.decode(record.value))


def _batches(path: Path) -> Iterator[tuple[int, int, int, memoryview]]:
    """The batches up to the first damaged one: a broker does not read its metadata log any further either."""
    for window in windows(path):
        batches = window.batches
        broken = first_broken(window.data, batches)
        good = batches if broken is None else batches[:broken]
        for header, at, size in zip(good.headers, good.positions.tolist(), good.sizes.tolist(), strict=True):
            count = int(header["last_offset_delta"]) + 1
            yield int(header["base_offset"]), int(header["attributes"]), count, window.data[at : at + size]
        if broken is not None:
            return
