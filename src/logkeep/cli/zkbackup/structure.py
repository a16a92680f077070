"""Whether a bundle has the directories and documents it should have, and no file that nothing speaks of; whether its
document is what was written; and what a repair gave up."""

from collections.abc import Iterator
from typing import Final

from logkeep.model.findings import Severity
from logkeep.zookeeper.bundle import layout
from logkeep.zookeeper.bundle.document import WITHOUT_DOCUMENT
from logkeep.zookeeper.bundle.repair_notes import repair_notes
from logkeep.zookeeper.bundle.view import CHANGED, BundleView
from logkeep.zookeeper.model.findings import Class, FileFinding

_DOCUMENTS: Final = (layout.MANIFEST, layout.MNTR, layout.STAT, layout.CONF)
_COPY_AGAIN: Final = "copy the bundle anew; for a restore it is not needed"


def structure_seen(view: BundleView) -> list[FileFinding]:
    """What a restore needs is checked file by file; beside that only the document can be damaged."""
    return [*_changed(view), *_missing(view), *_strays(view)]


def given_up_seen(view: BundleView) -> Iterator[FileFinding]:
    """The files are gone, and nothing else tells that there was more."""
    for note in repair_notes(view.path):
        if note.unreachable:
            spans = ", ".join(map(str, note.unreachable))
            yield _warning(
                Class.LOST_MOMENTS,
                f"{view.info.zookeeper.member}/{note.of}",
                f"it was damaged, no other backup had it, and a repair gave it up: {spans} cannot be restored to",
                f"the damaged file lies in {layout.DAMAGED}; another copy of this backup may have a whole one",
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
            yield _warning(Class.OBJECT_MISSING, name, "a directory of every backup is not there", _COPY_AGAIN)
    for name in _DOCUMENTS:
        if not (view.path / layout.METADATA / name).is_file():
            where = f"{layout.METADATA}/{name}"
            yield _warning(Class.OBJECT_MISSING, where, "a document of every backup is not there", _COPY_AGAIN)


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
                what = "the document does not name it; it is never read"
                yield _warning(Class.STRAY_FILE, f"{kind}/{path.name}", what, "move it elsewhere if it is not wanted")


def _warning(kind: Class, where: str, what: str, remedy: str) -> FileFinding:
    return FileFinding(kind=kind, severity=Severity.WARNING, where=where, what=what, remedy=remedy)
