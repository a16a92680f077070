"""Checks of a bundle besides its data: missing directories and documents, unknown files, a changed document, losses."""

from collections.abc import Iterator
from typing import Final

from logkeep.model.findings import Severity
from logkeep.zookeeper.bundle import layout
from logkeep.zookeeper.bundle.document import WITHOUT_DOCUMENT
from logkeep.zookeeper.bundle.repair_notes import repair_notes
from logkeep.zookeeper.bundle.view import CHANGED, BundleView
from logkeep.zookeeper.model.findings import Class, FileFinding

_DOCUMENTS: Final = (layout.MANIFEST, layout.MNTR, layout.STAT, layout.CONF)
_COPY_AGAIN: Final = "copy the bundle again; a restore does not need it"


def check_structure(view: BundleView) -> list[FileFinding]:
    """Files that a restore needs are checked one by one elsewhere; here only the document can be damaged."""
    return [*_changed(view), *_missing(view), *_strays(view)]


def find_dropped(view: BundleView) -> Iterator[FileFinding]:
    """Points in time that an earlier repair lost. The files are gone, so only the notes of the repair show this."""
    for note in repair_notes(view.path):
        if note.unreachable:
            spans = ", ".join(map(str, note.unreachable))
            yield _warning(
                Class.LOST_MOMENTS,
                f"{view.info.zookeeper.member}/{note.of}",
                f"it was damaged, no other backup had it, and a repair dropped it: {spans} cannot be restored",
                f"the damaged file is in {layout.DAMAGED}; another copy of this backup may have a good one",
            )


def _changed(view: BundleView) -> Iterator[FileFinding]:
    if not view.intact:
        yield FileFinding(
            kind=Class.DOCUMENT_CHANGED,
            severity=Severity.DAMAGE,
            where=f"{layout.METADATA}/{layout.INFO}",
            what=CHANGED,
            remedy=WITHOUT_DOCUMENT,
        )


def _missing(view: BundleView) -> Iterator[FileFinding]:
    directories = (layout.SNAPSHOTS, layout.TXNLOGS, layout.METADATA, layout.LOGS)
    for name in directories:
        if not (view.path / name).is_dir():
            yield _warning(Class.OBJECT_MISSING, name, "a directory that every backup has is missing", _COPY_AGAIN)
    for name in _DOCUMENTS:
        if not (view.path / layout.METADATA / name).is_file():
            where = f"{layout.METADATA}/{name}"
            yield _warning(Class.OBJECT_MISSING, where, "a document that every backup has is missing", _COPY_AGAIN)


def _strays(view: BundleView) -> Iterator[FileFinding]:
    files = view.info.files
    named = {
        layout.SNAPSHOTS: {entry.stored_name for entry in files.snapshots},
        layout.TXNLOGS: {entry.stored_name for entry in files.txnlogs},
    }
    for kind, known in named.items():
        directory = view.path / kind
        for path in sorted(directory.iterdir()) if directory.is_dir() else ():
            if path.name not in known:
                what = "the backup's document does not name it; it is never read"
                yield _warning(Class.STRAY_FILE, f"{kind}/{path.name}", what, "move it away if you do not need it here")


def _warning(kind: Class, where: str, what: str, remedy: str) -> FileFinding:
    return FileFinding(kind=kind, severity=Severity.WARNING, where=where, what=what, remedy=remedy)
