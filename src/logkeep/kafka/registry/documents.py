"""The one reader of archived schemas: what a schema id in archived records means.

A backup has a registry if it was taken with `--registry`, or if it holds the registry's topic. With both, what the
registry itself answered counts.
"""

from collections.abc import Iterator

import msgspec

from logkeep.errors import UsageError
from logkeep.kafka.registry.attachment import RegistryDocument, captured_registry
from logkeep.kafka.registry.schemas_topic import TOPIC, registry_of
from logkeep.kafka.registry.values import ArchivedRegistry
from logkeep.model.segments import Segment
from logkeep.repository.backups.manifest import LogCut, Manifest
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import Folded


def read_registry(place: SourceRef, folded: Folded, manifest: Manifest, topic: str = TOPIC) -> ArchivedRegistry:
    """The registry of a backup. Raises UsageError if it has none, and Damaged."""
    captured = captured_registry(place, manifest)
    if captured is not None:
        return captured.registry
    if topic_logs(manifest, topic):
        return read_topic(place, folded, manifest, topic)
    raise UsageError(
        "the backup has no schema registry",
        subject=f"backup {manifest.id}",
        remedy=f"back up the topic {topic}, or take a backup with --registry URL",
    )


def read_captured(place: SourceRef, manifest: Manifest) -> RegistryDocument | None:
    """What `kafka backup --registry` stored, with the registry's own export; None if there is nothing."""
    return captured_registry(place, manifest)


def topic_logs(manifest: Manifest, topic: str = TOPIC) -> tuple[LogCut, ...]:
    """The archived logs of the registry's topic; it has one partition."""
    return tuple(sorted((c for c in manifest.cut if c.log.name == topic), key=lambda c: c.log.partition))


def read_topic(place: SourceRef, folded: Folded, manifest: Manifest, topic: str = TOPIC) -> ArchivedRegistry:
    """The registry in an archived topic. Raises Damaged."""
    return registry_of(_records(place, folded, manifest, topic))


def _records(
    place: SourceRef, folded: Folded, manifest: Manifest, topic: str
) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    """The committed records of the topic that are not buried, in order."""
    from logkeep.formats.kafka.record_view import View, visible_records  # noqa: PLC0415 - numpy, and only here
    from logkeep.formats.kafka.transactions import Settling  # noqa: PLC0415
    from logkeep.kafka.logs.archived import stretches  # noqa: PLC0415
    from logkeep.kafka.logs.burials import read_buried  # noqa: PLC0415
    from logkeep.repository.backups.burials import burials_by_log  # noqa: PLC0415

    for cut in topic_logs(manifest, topic):
        segments = _segments(place, folded, manifest, cut)
        burials = burials_by_log(folded, manifest.id, [cut.log]).get(cut.log, ())
        settling = Settling()
        for stretch in stretches(place, segments, cut.start, cut.end):
            settling.take(stretch.buffer, stretch.batches)
        view = View(
            cut.start, cut.end, settling.settled(), buried=read_buried(place, [each.object for each in burials])
        )
        for records in visible_records(stretches(place, segments, cut.start, cut.end), view):
            for row, offset in enumerate(records.offsets.tolist()):
                yield offset, records.key(row), records.value(row)


def _segments(place: SourceRef, folded: Folded, manifest: Manifest, cut: LogCut) -> list[Segment]:
    from logkeep.repository.backups.content import PartReader, rows_of, served_parts  # noqa: PLC0415 - Arrow

    only = msgspec.structs.replace(manifest, cut=(cut,))
    rows = rows_of(PartReader(place), only, served_parts(manifest, folded))
    return sorted(rows.to_segments(), key=lambda segment: segment.start)
