"""What is asked of a restore, what was found at its target, and what it leaves as proof. Values only."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import msgspec

from logkeep.errors import LogkeepError
from logkeep.model.findings import Finding

USUAL_MAXBUFFER = 0xFFFFF
"""`jute.maxbuffer` of a server that nobody told otherwise."""


class Sessions(StrEnum):
    """`DROP` removes the ephemeral nodes too: without their sessions members of an ensemble would differ for good."""

    KEEP = "keep"
    DROP = "drop"


class Form(StrEnum):
    EXACT = "exact"
    """One snapshot of the tree at the zxid that was asked for, and no log."""
    ORIGINAL = "original"
    """The snapshot and the logs as they were archived, the last log cut behind that zxid."""


@dataclass(frozen=True, kw_only=True)
class ServerTarget:
    """The directories of one server, as its configuration names them (or their `version-2`)."""

    data_dir: Path
    log_dir: Path | None = None
    """`dataLogDir`; None where the configuration names none."""
    host: str = ""
    """`host:port` of its server, to ask whether it runs; empty: it is not asked."""
    host_from: str = ""
    """How it came to be asked, where nobody named it for this run."""


@dataclass(frozen=True, kw_only=True)
class ZooKeeperRestoreOptions:
    targets: tuple[ServerTarget, ...]
    sessions: Sessions = Sessions.KEEP
    form: Form = Form.EXACT
    ensemble: bool = False
    """Members of an ensemble, though no epoch file says so. Several targets always are."""
    alone: bool = False
    """A server that stands alone, whatever the backup is of: one that is started to look at the tree, and no more."""
    min_epoch: int = 0
    """An epoch that is known to have been in use, of a member that is not among the targets."""
    believe: bool = False
    """Restore though the end of an epoch is proven neither by a digest nor by a majority."""
    version: str = ""
    """Of the servers that will start; empty when it is not known."""
    extended_types: bool | None = None
    """Whether they have `extendedTypesEnabled=true`; None when it is not known."""
    jute_maxbuffer: int = USUAL_MAXBUFFER
    digests: bool = False
    """They are known to have digests on (3.6 and later): the snapshot then says what its digest is. A server of 3.9
    with digests off cannot load such a snapshot; all servers load one without."""
    accept_mismatch: str = ""
    """Why a tree shall be restored that is not the one the server had, by its own digest. The receipt says so. Empty:
    it shall not."""


@dataclass(frozen=True)
class FileOwner:
    """Who owns what is written, and what may be done with it: never more than with what it replaces."""

    uid: int
    gid: int
    file_mode: int
    directory_mode: int


@dataclass(frozen=True, kw_only=True)
class TargetContents:
    """What one server's directories hold now."""

    snapshots: int = 0
    logs: int = 0
    size_bytes: int = 0
    highest_zxid: int = 0
    """No transaction in them has a larger one."""
    exactly: bool = True
    """False: a damaged log was counted as if it were full of the smallest records."""
    epochs: tuple[int, ...] = ()
    """As `currentEpoch` and `acceptedEpoch` say."""
    beside_zxid: int = 0
    """The same of what earlier restores and rollbacks have left beside them: servers may have run on that, too."""
    beside_epochs: tuple[int, ...] = ()
    beside_files: tuple[str, str] = ("", "")
    """Which of that hold the highest zxid and the highest epoch; empty where there is none."""
    strays: tuple[str, ...] = ()
    """Names that a server reads and no server wrote."""
    myid: bool = False
    """Somebody gave the server a number."""
    fingerprint: str = ""
    """Changes with every name, size and time of change."""

    @property
    def empty(self) -> bool:
        return not (self.snapshots or self.logs or self.epochs)

    @property
    def raised_by(self) -> tuple[str, ...]:
        """Files beside that count, since nothing in `version-2` itself goes as far."""
        of_zxid, of_epoch = self.beside_files
        later = max(self.beside_epochs, default=0) > max(self.epochs, default=0)
        raised = [of_zxid if self.beside_zxid > self.highest_zxid else "", of_epoch if later else ""]
        return tuple(dict.fromkeys(file for file in raised if file))


@dataclass(frozen=True, kw_only=True)
class ZooKeeperRestorePlan:
    """A whole restore, decided and not begun."""

    backup: str
    zxid: int
    """The transaction that the restored tree stands at."""
    named: int
    """The zxid that servers will say they are at: neither replaced data nor the rest of the backup goes beyond it."""
    epoch: int | None
    """For both epoch files of every member; None for a server that stands alone."""
    sessions: Sessions
    form: Form
    nodes: int
    size_bytes: int
    held: tuple[TargetContents, ...]
    """By target."""
    findings: tuple[Finding, ...] = ()
    unchecked: tuple[str, ...] = ()
    """What could not be found out about running servers."""
    obstacles: tuple[LogkeepError, ...] = ()
    """Why it would be refused now, the first reason first."""

    @property
    def replaces(self) -> bool:
        """Whether the targets hold data, for whose replacement somebody has to say yes."""
        return any(not held.empty for held in self.held)


class RestoredServerFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    size_bytes: int
    sha256: str


class RestoredTarget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    data_dir: str
    log_dir: str
    files: tuple[RestoredServerFile, ...]
    kept: tuple[str, ...]
    """Directories that hold what was there before."""


class RestoreReceipt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="zookeeper-restore-1"):
    """What was restored, where, and how it was proven. The caller stores it."""

    restore: str
    backup: str
    zxid: int
    named_zxid: int
    epoch: int | None
    sessions: Sessions
    form: Form
    proof: str
    nodes: int
    transactions: int
    digest: int | None
    digests_compared: int
    dropped_sessions: int
    dropped_ephemerals: int
    started: str
    finished: str
    targets: tuple[RestoredTarget, ...]
    findings: tuple[Finding, ...] = ()
    unchecked: tuple[str, ...] = ()
