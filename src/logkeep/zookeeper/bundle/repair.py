"""Repair a bundle: write new files beside the damaged ones, then replace the document as a whole.

A repaired file has the name of the damaged one with another suffix, so both exist until the document names the new one:
that is the commit. A process that is killed before it leaves the bundle as it was. One that is killed after it may
leave a damaged original beside the new file instead of in `damaged/`; no reader uses it.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from logkeep.formats.zookeeper.names import log_name
from logkeep.model.segments import Codec
from logkeep.model.time import Clock, TokenSource
from logkeep.repository.object_writer import StoredObject, StoredWriter
from logkeep.store.local.directory import os_errors_about
from logkeep.store.local.files import sync_path
from logkeep.store.local.root import PARTIAL
from logkeep.store.local.store import LocalStore
from logkeep.zookeeper.bundle import layout
from logkeep.zookeeper.bundle.contents import log_entry
from logkeep.zookeeper.bundle.info_file import document_of, replace_document, sealed_again
from logkeep.zookeeper.bundle.repair_notes import dropped_note, repaired_note
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, BackupView
from logkeep.zookeeper.model.packing import RepairedLog
from logkeep.zookeeper.repair.plan import NewLog, RepairPlan
from logkeep.zookeeper.timeline.lost_moments import by_snapshot, moments_lost
from logkeep.zookeeper.timeline.survey import survey

_CODECS: Final = (Codec.GZIP, Codec.ZSTD, Codec.NONE)


@dataclass
class BundleRepairSink:
    """A `logkeep.zookeeper.repair.run.RepairSink`."""

    view: BundleView
    clock: Clock
    tokens: TokenSource
    _logs: list[tuple[RepairPlan, ArchivedLog, StoredObject]] = field(default_factory=list)
    _snapshots: dict[str, StoredObject] = field(default_factory=dict)

    def logs_of(self, repair: RepairPlan) -> Sequence[NewLog]:
        return repair.logs

    def new_log(self, repair: RepairPlan, first: int) -> RepairedLog:
        writer = self._open(layout.TXNLOGS, log_name(first))
        return RepairedLog(writer, lambda kept, stored: self._logs.append((repair, kept, stored)))

    def new_snapshot(self, snapshot: ArchivedSnapshot, source: BackupView) -> None:
        writer = self._open(layout.SNAPSHOTS, snapshot.name)
        try:
            with source.open(snapshot) as file:
                while piece := file.read(1 << 20):
                    writer.write(piece)
            self._snapshots[snapshot.name] = writer.close()
        finally:
            writer.abort()

    def complete(self, repairs: Sequence[RepairPlan], dropped: Sequence[ArchivedSnapshot]) -> BundleView:
        """The repaired bundle. Its document must be intact: it gets a new seal."""
        self._remove_logs_except(repairs)
        if not repairs and not dropped and not self._snapshots:
            return self.view
        root = self.view.path
        document = document_of(root)
        replaced = _DocumentChanges(root, document)
        with os_errors_about(str(root)):
            for repair in repairs:
                new = [(kept, stored) for of, kept, stored in self._logs if of is repair]
                replaced.log(repair, [_log_entry(repair, kept, self._rename(stored)) for kept, stored in new])
            for name, stored in self._snapshots.items():
                replaced.snapshot(name, self._rename(stored))
            for snapshot in dropped:
                replaced.snapshot(snapshot.name, None)
            notes = [repaired_note(repair, self.clock) for repair in repairs]
            gone = moments_lost(survey(self.view, without=dropped), dropped)
            notes += [dropped_note(one, spans, self.clock) for one, spans in by_snapshot(gone, dropped)]
            if notes:
                document["repairs"] = [*document.get("repairs", []), *notes]
            replace_document(root, sealed_again(document))
            replaced.move_originals()
            shutil.rmtree(root / PARTIAL, ignore_errors=True)
        return BundleView(root)

    def _remove_logs_except(self, repairs: Sequence[RepairPlan]) -> None:
        """A log may have been written before another part of its repair turned out to be impossible."""
        for plan, _, stored in self._logs:
            if not any(plan is repair for repair in repairs):
                (self.view.path / stored.name).unlink(missing_ok=True)

    def _open(self, kind: str, name: str) -> StoredWriter:
        """Under the first free suffix, with a token after it until `_rename`."""
        taken = {path.name for path in (self.view.path / kind).iterdir()}
        codec = next(c for c in _CODECS if f"{name}{c.suffix}" not in taken)
        token = self.tokens()
        stored = f"{kind}/{name}{codec.suffix}.{token}"
        return StoredWriter(LocalStore(self.view.path, self.tokens).open_new(stored), stored, token, codec)

    def _rename(self, stored: StoredObject) -> StoredObject:
        final = stored.name.removesuffix(f".{stored.token}")
        (self.view.path / stored.name).rename(self.view.path / final)
        sync_path((self.view.path / final).parent)
        return msgspec.structs.replace(stored, name=final)


@dataclass
class _DocumentChanges:
    """The changed document, and the files that it names no more."""

    root: Path
    document: dict[str, Any]
    originals: list[tuple[str, str]] = field(default_factory=list)

    def log(self, repair: RepairPlan, entries: list[dict[str, Any]]) -> None:
        kept = []
        for entry in self.document["files"]["txnlogs"]:
            if int(entry["start_zxid"], 16) == repair.of.first:
                self.originals.append((layout.TXNLOGS, entry["stored_name"]))
            else:
                kept.append(entry)
        ordered = sorted([*kept, *entries], key=lambda entry: int(entry["start_zxid"], 16))
        self.document["files"]["txnlogs"] = ordered

    def snapshot(self, name: str, stored: StoredObject | None) -> None:
        kept = []
        for entry in self.document["files"]["snapshots"]:
            if entry["name"] != name:
                kept.append(entry)
                continue
            self.originals.append((layout.SNAPSHOTS, entry["stored_name"]))
            if stored is not None:
                kept.append({**entry, **_stored_fields(stored)})
        self.document["files"]["snapshots"] = kept

    def move_originals(self) -> None:
        """Damaged files are kept, in a directory that no reader uses."""
        aside = self.root / layout.DAMAGED
        aside.mkdir(mode=0o700, exist_ok=True)
        for kind, name in self.originals:
            original = self.root / kind / name
            if original.exists():
                original.rename(_free(aside, name))
        sync_path(aside)


def _free(directory: Path, name: str) -> Path:
    """A file of that name may exist from an earlier repair, or from the backup itself."""
    number = sum(path.name.startswith(name) for path in directory.iterdir())
    return directory / (f"{name}.{number}" if number else name)


def _log_entry(repair: RepairPlan, kept: ArchivedLog, stored: StoredObject) -> dict[str, Any]:
    whole = kept.last == repair.of.last and not repair.lost
    status, stored_name = "valid" if whole else "truncated", stored.name.rpartition("/")[2]
    entry = log_entry(kept, stored, stored_name, status=status, note=f"Repaired: {repair}")
    built: dict[str, Any] = msgspec.to_builtins(entry)
    return built


def _stored_fields(stored: StoredObject) -> dict[str, Any]:
    return {
        "stored_name": stored.name.rpartition("/")[2],
        "stored_size": stored.size_bytes,
        "stored_checksum": f"sha256:{stored.sha256}",
    }
