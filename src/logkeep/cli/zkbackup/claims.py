"""What `backup_info.json` says, typed as far as answers show it. Written by another run, or by anybody: so checked.

Fields that are not there have values that promise nothing; fields of a wrong kind make the whole document unreadable.
"""

from pathlib import Path

import msgspec

from logkeep.zookeeper.model.condition import Condition

INFO = Path("metadata", "backup_info.json")
_LARGEST_BYTES = 256 << 20


class ClaimedZxid(msgspec.Struct, frozen=True):
    decimal: int = 0


class ClaimedServer(msgspec.Struct, frozen=True):
    version: str = ""
    host: str = ""
    data_dir: str = ""
    log_dir: str = ""


class ClaimedSnapshot(msgspec.Struct, frozen=True):
    name: str = ""
    zxid: str = ""
    size: int = 0
    status: str = ""


class ClaimedLog(msgspec.Struct, frozen=True):
    name: str = ""
    start_zxid: str = ""
    end_zxid: str = ""
    size: int = 0
    status: str = ""
    transaction_count: int = 0
    note: str = ""


class ClaimedFiles(msgspec.Struct, frozen=True):
    snapshots: tuple[ClaimedSnapshot, ...] = ()
    txnlogs: tuple[ClaimedLog, ...] = ()


class ClaimedValidation(msgspec.Struct, frozen=True):
    enabled: bool = False
    total_files: int = 0
    valid_files: int = 0
    corrupted_files: int = 0
    repaired_files: int = 0
    unrecoverable_files: int = 0
    status: Condition | None = None
    quality_score: int = 0
    old_hole: bool = False
    unproven_end: bool = False
    level: str = "replay"
    """Where it is not said: the one that `verify` has without a flag."""

    @property
    def condition(self) -> Condition:
        """A backup whose verification was killed or took too long has no status, and is not damaged for that."""
        return self.status or Condition.UNVERIFIED


class ClaimedStatistics(msgspec.Struct, frozen=True):
    total_size: int = 0
    compressed_size: int = 0
    duration_seconds: float = 0.0

    @property
    def stored_bytes(self) -> int:
        """Where nobody said how it is packed, it is taken to be plain."""
        return self.compressed_size or self.total_size


class Claims(msgspec.Struct, frozen=True):
    backup_timestamp: str
    backup_zxid: ClaimedZxid
    backup_id: str = ""
    zookeeper: ClaimedServer = ClaimedServer()
    files: ClaimedFiles = ClaimedFiles()
    validation: ClaimedValidation = ClaimedValidation()
    statistics: ClaimedStatistics = ClaimedStatistics()


def claims(directory: Path) -> Claims:
    """Raises OSError, ValueError."""
    return msgspec.json.decode(document_bytes(directory), type=Claims)


def document_bytes(directory: Path) -> bytes:
    """The document as it stands. Raises OSError, and ValueError for one that no backup has."""
    with (directory / INFO).open("rb") as file:
        content = file.read(_LARGEST_BYTES + 1)
    if len(content) > _LARGEST_BYTES:
        raise ValueError("too large for a document of a backup")
    return content
