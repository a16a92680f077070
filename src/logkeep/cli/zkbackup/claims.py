"""A lenient view of `backup_info.json`, for commands that only list and show backups.

The document may come from anywhere, so its types are checked. Missing fields get neutral values; a field of a wrong
type makes the whole document unreadable. A backup is verified and restored from the strict `bundle.document`.
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
    """The default level of `verify`."""

    @property
    def condition(self) -> Condition:
        """A backup whose verification was killed or timed out has no status; that does not make it damaged."""
        return self.status or Condition.UNVERIFIED


class ClaimedStatistics(msgspec.Struct, frozen=True):
    total_size: int = 0
    compressed_size: int = 0
    duration_seconds: float = 0.0

    @property
    def stored_bytes(self) -> int:
        """A document without the compressed size is taken to describe an uncompressed backup."""
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
    """The document's bytes. Raises OSError, and ValueError for a file that is too large."""
    with (directory / INFO).open("rb") as file:
        content = file.read(_LARGEST_BYTES + 1)
    if len(content) > _LARGEST_BYTES:
        raise ValueError("too large for a document of a backup")
    return content
