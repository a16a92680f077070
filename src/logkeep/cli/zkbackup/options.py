"""Every option of zkbackup, and what configuration files may hold. Defaults are those of the design that users know.

What an option of zkbackup is: the house's, with the names that zkbackup has for flags, variables and keys.

Values that only zkbackup's options have: names of bundles.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from logkeep.config.option import Option, Spelling
from logkeep.config.option_types import Bool, FilePath, Int, OneOf, Size, Text, Timestamp, ZxidNumber

T = TypeVar("T")


@dataclass(frozen=True)
class ZkOption(Option[T]):
    """`key` makes the variable: `backup.base_dir` is `ZKBACKUP_BACKUP_BASE_DIR`.

    One key may serve several options: what `backup` calls the output directory is the base directory of `list`.
    """

    also: tuple[str, ...] = ()
    """Other flags that mean the same."""
    flagless: bool = False
    """Only for configuration files and variables."""

    def spellings(self) -> tuple[Spelling[T], ...]:
        variables = (variable_name(self.key),) if self.key else ()
        slot = self.name if self.typed else ""
        flag = "" if self.flagless else f"--{self.typed or self.name}"
        return (Spelling(self.kind, flag, self.key, (*variables, *self.variables), slot=slot, also=self.also),)


def variable_name(key: str) -> str:
    return "ZKBACKUP_" + key.upper().replace(".", "_")


_BUNDLE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True)
class BundleId:
    """The name of a bundle, which is also that of its directory."""

    metavar: str = "ID"
    expected: str = "1 to 64 letters, digits, dots, dashes or underscores, and no dot first"

    def parse(self, text: str) -> str:
        if not _BUNDLE_ID.fullmatch(text) or text.startswith("."):
            raise ValueError(f"must be {self.expected}, not {text!r}")
        return text

    def from_yaml(self, value: object) -> str:
        return self.parse(str(value))

    def show(self, value: object) -> str:
        return str(value)


_TEXT_OR_JSON: Final = ("text", "json")

DATA_DIR: ZkOption[Path | None] = ZkOption(
    "zk-data-dir", FilePath("DIR"), None, "ZooKeeper's dataDir, or the version-2 below it.", key="zookeeper.data_dir"
)
LOG_DIR: ZkOption[Path | None] = ZkOption(
    "zk-log-dir", FilePath("DIR"), None, "ZooKeeper's dataLogDir, or the version-2 below it.",
    key="zookeeper.log_dir", default_text="the data directory",
)  # fmt: skip
HOST: ZkOption[str] = ZkOption(
    "zk-host", Text("HOST:PORT"), "localhost:2181", "Server that is asked for its state and last zxid.",
    key="zookeeper.host",
)  # fmt: skip
TIMEOUT: ZkOption[int] = ZkOption(
    "zk-timeout", Int(1, 3600, "SECONDS"), 5, "How long the server may take to answer.", key="zookeeper.timeout"
)

OUTPUT_DIR: ZkOption[Path | None] = ZkOption(
    "output-dir", FilePath("DIR"), None, "Where backups are kept; each gets a directory there.", key="backup.base_dir"
)
BASE_DIR: ZkOption[Path] = ZkOption(
    "backup-base-dir", FilePath("DIR"), Path("/backup/zookeeper"), "Where backups are kept.", key="backup.base_dir"
)
BACKUP_DIR: ZkOption[Path | None] = ZkOption("backup-dir", FilePath("DIR"), None, "Directory of the backup.")
BACKUP_ID: ZkOption[str | None] = ZkOption(
    "backup-id", BundleId(), None, "Name of the backup.", default_text="backup-YYYYMMDD-HHMMSS"
)
VERIFY: ZkOption[bool] = ZkOption(
    "verify", Bool(), True, "Verify the backup when it is complete.", key="backup.auto_verify"
)
COMPRESSION: ZkOption[str] = ZkOption(
    "compression", OneOf(("none", "gzip", "zstd")), "gzip", "How files are stored.", key="backup.compression"
)
COMPRESSION_LEVEL: ZkOption[int | None] = ZkOption(
    "compression-level", Int(1, 9), None, "Smaller or faster, 1 to 9.", key="backup.compression_level",
    default_text="1",
)  # fmt: skip
AUTO_REPAIR: ZkOption[bool] = ZkOption(
    "auto-repair", Bool(), True, "Trim the end of the log that is being written, and call that fine.",
    key="backup.auto_repair",
)  # fmt: skip
CONCURRENT_COPIES: ZkOption[int] = ZkOption(
    "concurrent-copies", Int(1, 64), 4, "Files that are copied at the same time.", key="backup.concurrent_copies"
)
INCLUDE_CONFIG: ZkOption[bool] = ZkOption(
    "include-config", Bool(), False, "Keep zoo.cfg, myid and the like too, with passwords removed."
)
INCLUDE_SECRETS: ZkOption[bool] = ZkOption(
    "include-secrets", Bool(), False, "Keep them unchanged, with jaas.conf and key stores; never keytabs."
)
CONFIG_DIR: ZkOption[Path | None] = ZkOption(
    "zk-conf-dir",
    FilePath("DIR"),
    None,
    "Where zoo.cfg, java.env and jaas.conf are.",
    default_text="the usual places",
)

FORCE: ZkOption[bool] = ZkOption("force", Bool(), False, "Do not ask.")
DRY_RUN: ZkOption[bool] = ZkOption("dry-run", Bool(), False, "Show what would be done and change nothing.")
SKIP_VERIFY: ZkOption[bool] = ZkOption("skip-verify", Bool(), False, "Do not verify the backup first; not wise.")
TO_ZXID: ZkOption[int | None] = ZkOption(
    "to-zxid", ZxidNumber(), None, "Restore the tree as it was after this transaction.", also=("--truncate-to-zxid",),
    default_text="the end of the backup",
)  # fmt: skip
TO_TIME: ZkOption[int | None] = ZkOption(
    "to-time", Timestamp(), None, "Restore the tree as it was at this time: nothing later is in it."
)
SESSIONS: ZkOption[str] = ZkOption(
    "sessions", OneOf(("keep", "drop")), "keep", "Drop removes all sessions and their ephemeral znodes."
)
FORM: ZkOption[str] = ZkOption(
    "form", OneOf(("exact", "original")), "exact",
    "One snapshot of that very moment, or the archived files with the last log cut.",
)  # fmt: skip
BELIEVE: ZkOption[bool] = ZkOption(
    "believe", Bool(), False, "Also restore across ends of epochs that nothing proves (before 3.6)."
)
ACCEPT_MISMATCH: ZkOption[str] = ZkOption(
    "accept-mismatch", Text("REASON"), "",
    "Restore though digests of the server contradict the tree. The reason is kept in the receipt.",
)  # fmt: skip
ENSEMBLE: ZkOption[bool] = ZkOption(
    "ensemble", Bool(), False, "The target is a member of an ensemble: epoch files are written."
)
MIN_EPOCH: ZkOption[int] = ZkOption(
    "min-epoch", Int(), 0, "An epoch that is known to have been in use; the restored one lies above it."
)
ZK_VERSION: ZkOption[str] = ZkOption(
    "zk-version", Text("VERSION"), "", "Version of the server that will start, to refuse what it cannot hold."
)
CONTINUE: ZkOption[bool] = ZkOption(
    "continue", Bool(), False, "Bring an interrupted restore of these directories to its end."
)
ROLLBACK: ZkOption[bool] = ZkOption(
    "rollback", Bool(), False, "Bring back what these directories held before the last restore."
)
RESTORE_CONFIRMATION: ZkOption[bool] = ZkOption(
    "restore-confirmation", Bool(), True, "Ask before a restore.", key="restore.require_confirmation", flagless=True
)
VERIFY_BEFORE_RESTORE: ZkOption[bool] = ZkOption(
    "verify-before-restore", Bool(), True, "Verify before a restore.", key="restore.verify_before_restore",
    flagless=True,
)  # fmt: skip
BACKUP_BEFORE_RESTORE: ZkOption[bool] = ZkOption(
    "backup-before-restore", Bool(), True, "Keep the replaced data; cannot be switched off.",
    key="restore.backup_before_restore", flagless=True,
)  # fmt: skip

FIX: ZkOption[bool] = ZkOption("fix", Bool(), False, "Repair what can be repaired; originals are kept.")
LEVEL: ZkOption[str] = ZkOption(
    "level", OneOf(("files", "data", "replay", "boot")), "replay",
    "How deep: presence and sizes, every checksum, a full replay, or a real server started on a copy.",
)  # fmt: skip

KEEP_DAYS: ZkOption[int] = ZkOption(
    "keep-days", Int(), 7, "Backups that are older go; 0: age does not matter.", key="prune.keep_days"
)
KEEP_COUNT: ZkOption[int] = ZkOption("keep-count", Int(), 0, "Keep at most so many.", default_text="0, no limit")
KEEP_MIN_COUNT: ZkOption[int] = ZkOption(
    "keep-min-count", Int(), 3, "Keep at least so many good ones, whatever their age.", key="prune.keep_min_count"
)
DELETE_DAMAGED: ZkOption[bool] = ZkOption(
    "delete-damaged", Bool(), False, "Let damaged backups go too, by the same rules."
)
PRUNE_CONFIRMATION: ZkOption[bool] = ZkOption(
    "prune-confirmation", Bool(), True, "Ask before backups are deleted.", key="prune.require_confirmation",
    flagless=True,
)  # fmt: skip

FORMAT: ZkOption[str] = ZkOption(
    "format", OneOf(_TEXT_OR_JSON), "text", "For people, or one JSON document.", also=("--output-format",)
)
LIST_FORMAT: ZkOption[str] = ZkOption(
    "list-format", OneOf(("table", "json", "simple")), "table", "A table, one JSON document, or one id per line.",
    typed="format", also=("--output-format",),
)  # fmt: skip
SORT_BY: ZkOption[str] = ZkOption("sort-by", OneOf(("time", "size", "zxid")), "time", "Largest or newest first.")
LIMIT: ZkOption[int] = ZkOption("limit", Int(), 20, "Show at most so many; 0: all.")

CONFIG: ZkOption[Path | None] = ZkOption(
    "config", FilePath(), None, "Read this file in place of ./zkbackup.yaml.", variables=("ZKBACKUP_CONFIG",)
)
VERBOSE: ZkOption[bool] = ZkOption("verbose", Bool(), False, "Log details.")
QUIET: ZkOption[bool] = ZkOption("quiet", Bool(), False, "No progress, and only errors in the log.")
METRICS_FILE: ZkOption[Path | None] = ZkOption(
    "metrics-file", FilePath(), None, "Prometheus textfile to update after the run.", key="metrics.file"
)
LOG_LEVEL: ZkOption[str | None] = ZkOption(
    "log-level", OneOf(("debug", "info", "warn", "error")), None, "Least important message to log.",
    key="logging.level", default_text="info; warn where the log goes to stderr",
)  # fmt: skip
LOG_FORMAT: ZkOption[str] = ZkOption(
    "log-format", OneOf(_TEXT_OR_JSON), "text", "Log lines for people or for machines.", key="logging.format"
)
LOG_OUTPUT: ZkOption[str] = ZkOption(
    "log-output", OneOf(("stdout", "stderr", "file")), "stderr",
    "Where the log goes; stdout only as long as no JSON is asked for.", key="logging.output",
)  # fmt: skip
LOG_FILE: ZkOption[Path] = ZkOption(
    "log-file", FilePath(), Path("/var/log/zkbackup/zkbackup.log"), "The log file, when the log goes to one.",
    key="logging.file",
)  # fmt: skip

MAX_RECORD_SIZE: ZkOption[int | None] = ZkOption(
    "max-txn-record-size", Size(), None, "A longer transaction record is damage.",
    key="advanced.max_txn_record_size", default_text="the size of the file",
)  # fmt: skip
COPY_BUFFER_SIZE: ZkOption[int] = ZkOption(
    "copy-buffer-size", Size(minimum=4096), 1024 * 1024, "Bytes that are read at once.",
    key="advanced.copy_buffer_size",
)  # fmt: skip
VALIDATION_TIMEOUT: ZkOption[int | None] = ZkOption(
    "validation-timeout", Int(1, metavar="SECONDS"), None, "A verification that takes longer has failed.",
    key="advanced.validation_timeout", default_text="no limit",
)  # fmt: skip

SERVER: Final = (DATA_DIR, LOG_DIR, HOST, TIMEOUT)
COMMON: Final = (CONFIG, VERBOSE, QUIET, LOG_LEVEL, LOG_FORMAT, LOG_OUTPUT, LOG_FILE)

OPTIONS: Final[tuple[ZkOption[Any], ...]] = tuple(v for v in list(globals().values()) if isinstance(v, ZkOption))
"""All of them, in the order of this file."""
