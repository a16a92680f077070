"""Values of a restore: its options, the contents of its target, its plan and its receipt."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import msgspec

from logkeep.errors import LogkeepError
from logkeep.model.findings import Finding

USUAL_MAXBUFFER = 0xFFFFF
"""The default of `jute.maxbuffer`."""
HIGHEST_EPOCH = (1 << 31) - 2
"""No epoch can be chosen above it. No server ever reaches it by counting."""


class Sessions(StrEnum):
    """`DROP` removes the ephemeral nodes too: without their sessions the members of an ensemble would differ."""

    KEEP = "keep"
    DROP = "drop"


class Form(StrEnum):
    EXACT = "exact"
    """One snapshot of the tree at the requested zxid, and no log."""
    ORIGINAL = "original"
    """The snapshot and the logs as they were archived, the last log cut after that zxid."""


@dataclass(frozen=True, kw_only=True)
class ServerTarget:
    """The directories of one server, as its configuration names them (or their `version-2`)."""

    data_dir: Path
    log_dir: Path | None = None
    """`dataLogDir`; None where the configuration names none."""
    host: str = ""
    """`host:port` of its server, to ask whether it runs; empty: it is not asked."""
    host_from: str = ""
    """Where `host` comes from, if the user did not name it for this run."""


@dataclass(frozen=True, kw_only=True)
class ZooKeeperRestoreOptions:
    targets: tuple[ServerTarget, ...]
    sessions: Sessions = Sessions.KEEP
    form: Form = Form.EXACT
    ensemble: bool = False
    """The targets are members of an ensemble, also without epoch files. Several targets always are."""
    alone: bool = False
    """A standalone server, whatever the backup is of: it is only started to read the tree."""
    min_epoch: int = 0
    """An epoch that a member which is not among the targets has used."""
    believe: bool = False
    """Restore though the end of an epoch is proven neither by a digest nor by a majority."""
    version: str = ""
    """Of the servers that will start; empty when it is not known."""
    extended_types: bool | None = None
    """Whether they have `extendedTypesEnabled=true`; None when it is not known."""
    jute_maxbuffer: int = USUAL_MAXBUFFER
    digests: bool = False
    """The servers have digests enabled (3.6 and later): the snapshot then includes its digest. A server of 3.9 with
    digests disabled cannot load such a snapshot; all servers load one without."""
    accept_mismatch: str = ""
    """The reason to restore a tree whose digest differs from the server's. The receipt has it. Empty: refuse."""


@dataclass(frozen=True)
class FileOwner:
    """Owner and modes of written files: never more permissions than the replaced files had."""

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
    """No transaction in the directories has a larger one."""
    exactly: bool = True
    """False: a damaged log was counted as if it were full of the smallest records."""
    epochs: tuple[int, ...] = ()
    """From `currentEpoch` and `acceptedEpoch`."""
    beside_zxid: int = 0
    """The highest zxid of data that earlier restores and rollbacks left beside: servers may have run on that, too."""
    beside_epochs: tuple[int, ...] = ()
    beside_files: tuple[str, str] = ("", "")
    """The files beside that hold the highest zxid and the highest epoch; empty where there is none."""
    strays: tuple[str, ...] = ()
    """Names that a server reads and no server wrote."""
    myid: bool = False
    """The file `myid` exists."""
    fingerprint: str = ""
    """Changes with every name, size and time of change."""

    @property
    def empty(self) -> bool:
        return not (self.snapshots or self.logs or self.epochs)

    @property
    def raised_by(self) -> tuple[str, ...]:
        """The files beside with higher numbers than all files in `version-2`."""
        of_zxid, of_epoch = self.beside_files
        later = max(self.beside_epochs, default=0) > max(self.epochs, default=0)
        raised = [of_zxid if self.beside_zxid > self.highest_zxid else "", of_epoch if later else ""]
        return tuple(dict.fromkeys(file for file in raised if file))


@dataclass(frozen=True, kw_only=True)
class ZooKeeperRestorePlan:
    """A whole restore, decided and not started."""

    backup: str
    zxid: int
    """The last transaction of the restored tree."""
    named: int
    """The zxid that servers will report: neither replaced data nor the rest of the backup has a higher one."""
    epoch: int | None
    """For both epoch files of every member; None for a standalone server."""
    sessions: Sessions
    form: Form
    nodes: int
    size_bytes: int
    held: tuple[TargetContents, ...]
    """By target."""
    findings: tuple[Finding, ...] = ()
    unchecked: tuple[str, ...] = ()
    """What could not be checked about running servers."""
    obstacles: tuple[LogkeepError, ...] = ()
    """Why the restore would be refused now, in the order of the checks."""

    @property
    def replaces(self) -> bool:
        """Whether the targets hold data; the user has to agree to its replacement."""
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
    """Directories that hold the replaced data."""


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
