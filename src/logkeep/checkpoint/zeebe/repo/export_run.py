"""Writes a backup from the repository into a store from which Zeebe's own `restore` restores it.

Files first, manifests last: an interrupted export is a backup that does not exist for Zeebe, and the next one completes
it. Nothing that another program stored under this id is changed: then the export is refused.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from logkeep.checkpoint.zeebe.layouts import SEGMENTS, SNAPSHOT, CopyPlace, place_of
from logkeep.checkpoint.zeebe.repo.export_task import FileExport, FileExported, export_file
from logkeep.checkpoint.zeebe.repo.record import ZeebePartition, ZeebeRecord, file_name, log_name
from logkeep.errors import ObjectMissing, TargetUnsafe
from logkeep.formats.zeebe.manifest_text import write_manifest
from logkeep.formats.zeebe.manifests import MAX_MANIFEST, CopyManifest, CopyState, ManifestForm, StoredFile
from logkeep.formats.zeebe.segment_descriptor import segment_name, write_descriptor
from logkeep.model.segments import LogName, Segment
from logkeep.model.work import Engine
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.store.base import Store

_OTHER_TARGET = "export into an empty directory or prefix"


class StoreLayout(StrEnum):
    """How Zeebe names objects: S3 up to 8.8, or file systems."""

    S3 = "s3"
    FILES = "files"


@dataclass(frozen=True)
class ZeebeExported:
    files: int
    size_bytes: int
    """Written by this run."""


def manifest_of(record: ZeebeRecord, partition: ZeebePartition, layout: StoreLayout) -> CopyManifest:
    return CopyManifest(
        form=ManifestForm.S3 if layout is StoreLayout.S3 else ManifestForm.FILES,
        partition=partition.partition,
        checkpoint_id=record.checkpoint_id,
        node=partition.node,
        state=CopyState.COMPLETED,
        failure="",
        snapshot_id=partition.snapshot_id,
        checkpoint_position=partition.checkpoint_position,
        partitions=len(record.partitions),
        broker_version=partition.broker_version,
        first_log_position=partition.first_log_position,
        checkpoint_type=partition.checkpoint_type,
        snapshot_files=tuple(StoredFile(each.name) for each in partition.files),
        segment_files=tuple(StoredFile(each) for each in partition.segment_names()),
        created=_moment(partition.created),
        modified=_moment(partition.modified),
        stray_bytes=0,
    )


def _moment(text: str) -> datetime | None:
    """None also for a text that is not a time: Zeebe restores without it."""
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    return None


class ZeebeExport:
    """One export of one backup, which the caller holds."""

    def __init__(self, place: SourceRef, folded: Folded, entry: BackupEntry, record: ZeebeRecord) -> None:
        manifest = read_manifest(place, entry)
        rows = rows_of(PartReader(place), manifest, served_parts(manifest, folded)).to_segments()
        self._place, self._record = place, record
        self._rows = dict[LogName, list[Segment]]()
        for row in sorted(rows, key=lambda row: row.start):
            self._rows.setdefault(row.log, []).append(row)

    def run(self, store: Store, layout: StoreLayout, engine: Engine) -> ZeebeExported:
        """Raises TargetUnsafe if the target has other objects under this id."""
        copies = {self._copy(each, layout): each for each in self._record.partitions}
        present = self._present(store, copies)
        todo = {copy: each for copy, each in copies.items() if not self._is_whole(store, copy, each, layout, present)}
        for copy in todo:
            for name in present.get(copy, ()):
                store.delete(name)  # of an export that was interrupted: no manifest names it
        units = [unit for copy, each in todo.items() for unit in self._units(store, copy, each)]
        found = engine.map(export_file, units, FileExported, label="export", weight=lambda unit: unit.size_bytes)
        for copy, each in todo.items():
            store.put_new(copy.manifest, write_manifest(manifest_of(self._record, each, layout)))
        return ZeebeExported(len(found), sum(each.size_bytes for each in found))

    def _copy(self, partition: ZeebePartition, layout: StoreLayout) -> CopyPlace:
        split = layout is StoreLayout.FILES
        return CopyPlace(self._record.checkpoint_id, partition.partition, partition.node, split=split)

    def _present(self, store: Store, copies: Mapping[CopyPlace, ZeebePartition]) -> dict[CopyPlace, list[str]]:
        """Objects of this backup in the target, by copy. A copy of another broker would be restored instead of ours."""
        present = dict[CopyPlace, list[str]]()
        for info in store.list(""):
            copy = place_of(info.name)
            if copy is None or copy.checkpoint_id != self._record.checkpoint_id:
                continue
            if copy not in copies:
                what = f"the target has objects of backup {copy.checkpoint_id} that this export would not write"
                raise TargetUnsafe(what, subject=info.name, remedy=_OTHER_TARGET)
            present.setdefault(copy, []).append(info.name)
        return present

    def _is_whole(
        self,
        store: Store,
        copy: CopyPlace,
        partition: ZeebePartition,
        layout: StoreLayout,
        present: Mapping[CopyPlace, Sequence[str]],
    ) -> bool:
        """Whether an earlier run has exported this partition."""
        if copy.manifest not in present.get(copy, ()):
            return False
        try:
            found = store.get(copy.manifest, MAX_MANIFEST)
        except ObjectMissing:
            return False
        if found != write_manifest(manifest_of(self._record, partition, layout)):
            what = f"the target has another backup {copy.checkpoint_id} of partition {copy.partition}"
            raise TargetUnsafe(what, subject=copy.manifest, remedy=_OTHER_TARGET)
        return True

    def _units(self, store: Store, copy: CopyPlace, partition: ZeebePartition) -> list[FileExport]:
        return [*self._segments(store, copy, partition), *self._files(store, copy, partition)]

    def _segments(self, store: Store, copy: CopyPlace, partition: ZeebePartition) -> list[FileExport]:
        rows = self._rows.get(log_name(self._record.history, partition.partition), [])
        return [
            FileExport(
                place=self._place,
                store=store,
                name=copy.file(SEGMENTS, segment_name(partition.partition, each.number)),
                head=write_descriptor(each.descriptor()),
                rows=tuple(row for row in rows if each.first <= row.start and row.end <= each.end),
                size_bytes=each.used_bytes,
                sha256=each.frames_sha256,
            )
            for each in partition.segments
        ]

    def _files(self, store: Store, copy: CopyPlace, partition: ZeebePartition) -> list[FileExport]:
        return [
            FileExport(
                place=self._place,
                store=store,
                name=copy.file(SNAPSHOT, each.name),
                head=b"",
                rows=tuple(self._rows.get(file_name(each.sha256, partition.partition), ())[:1]),
                size_bytes=each.size_bytes,
                sha256=each.sha256,
            )
            for each in partition.files
        ]
