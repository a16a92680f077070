"""Findings about ZooKeeper's files: class, place, zxid and remedy.

`FileFinding.finding` converts one to the form in which Logkeep stores and prints all findings.
"""

from dataclasses import dataclass
from enum import StrEnum

from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.findings import Finding, Severity

NAME_LOG_DIR = "name what its zoo.cfg has as dataLogDir: --zk-log-dir of zkbackup, --log-dir of logkeep"
"""The remedy where snapshots were found and no log."""


class Class(StrEnum):
    """Stable names, for scripts."""

    ACTIVE_TAIL = "active-tail"
    TORN_LOG = "torn-log"
    LOG_DAMAGED = "log-damaged"
    LOG_HEADER = "log-header"
    LOG_EMPTY = "log-empty"
    STRAY_FILE = "stray-file"
    OBJECT_MISSING = "object-missing"
    SIZE_MISMATCH = "size-mismatch"
    HASH_MISMATCH = "hash-mismatch"
    SEAL_BROKEN = "seal-broken"
    DOCUMENT_CHANGED = "document-changed"
    FACTS_DIFFER = "facts-differ"
    SNAPSHOT_DAMAGED = "snapshot-damaged"
    SNAPSHOT_UNBOUNDED = "snapshot-unbounded"
    WINDOW_OPEN = "window-open"
    LOST_TRANSACTIONS = "lost-transactions"
    LOST_MOMENTS = "lost-moments"
    UNSEEN_DELETIONS = "unseen-deletions"
    EPOCH_END_UNPROVEN = "epoch-end-unproven"
    NEVER_COMMITTED = "never-committed"
    AGREEMENT_UNCHECKED = "agreement-unchecked"
    MEMBERS_DISAGREE = "members-disagree"
    END_UNREACHABLE = "end-unreachable"
    NOT_RESTORABLE = "not-restorable"
    DIGEST_MISMATCH = "digest-mismatch"
    REPLAY_FAILED = "replay-failed"
    TREES_DIFFER = "trees-differ"
    BOOT_FAILED = "boot-failed"
    BOOT_DIFFERS = "boot-differs"
    NOT_BOOTED = "not-booted"
    DAMAGED_BEFORE = "damaged-before"


@dataclass(frozen=True, kw_only=True)
class FileFinding:
    kind: Class
    severity: Severity
    where: str
    what: str
    remedy: str = ""
    position: int | None = None
    """The byte in the file."""
    zxid: int | None = None
    """The last good transaction before it."""
    lost: tuple[int, int] | None = None
    """First and last transaction that are gone, where both numbers are known."""

    @property
    def finding(self) -> Finding:
        return Finding(
            code=self.kind, severity=self.severity, where=self.where, what=self.what + self._place(), remedy=self.remedy
        )

    def _place(self) -> str:
        at = [] if self.position is None else [f"at byte {self.position}"]
        at += [] if self.zxid is None else [f"behind zxid {hex_zxid(self.zxid)}"]
        at += [] if self.lost is None else [f"lost {hex_zxid(self.lost[0])} to {hex_zxid(self.lost[1])}"]
        return f" ({', '.join(at)})" if at else ""
