"""Every option of zkbackup: its flags, `ZKBACKUP_…` variables and YAML keys."""

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

    Several options may have the same key: the output directory of `backup` is the base directory of `list`.
    """

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
    """The name of a bundle and of its directory."""

    metavar: str = "ID"
    expected: str = "1 to 64 letters, digits, dots, dashes or underscores, not starting with a dot"

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
    "zk-data-dir", FilePath("DIR"), None, "ZooKeeper's dataDir, or its version-2 directory.", key="zookeeper.data_dir",
    also=("--data-dir",),
)  # fmt: skip
LOG_DIR: ZkOption[Path | None] = ZkOption(
    "zk-log-dir", FilePath("DIR"), None, "ZooKeeper's dataLogDir, or its version-2 directory.",
    key="zookeeper.log_dir", default_text="the data directory",
)  # fmt: skip
HOST: ZkOption[str] = ZkOption(
    "zk-host", Text("HOST:PORT"), "localhost:2181", "Server to ask for its state and last zxid.",
    key="zookeeper.host",
)  # fmt: skip
TIMEOUT: ZkOption[int] = ZkOption(
    "zk-timeout", Int(1, 3600, "SECONDS"), 5, "Timeout for answers of the server.", key="zookeeper.timeout"
)

OUTPUT_DIR: ZkOption[Path | None] = ZkOption(
    "output-dir",
    FilePath("DIR"),
    None,
    "Directory of the backups; each gets a directory below it.",
    key="backup.base_dir",
)
BASE_DIR: ZkOption[Path] = ZkOption(
    "backup-base-dir", FilePath("DIR"), Path("/backup/zookeeper"), "Directory of the backups.", key="backup.base_dir"
)
BACKUP_DIR: ZkOption[Path | None] = ZkOption("backup-dir", FilePath("DIR"), None, "Directory of the backup.")
BACKUP_ID: ZkOption[str | None] = ZkOption(
    "backup-id", BundleId(), None, "Name of the backup.", default_text="backup-YYYYMMDD-HHMMSS"
)
VERIFY: ZkOption[bool] = ZkOption(
    "verify", Bool(), True, "Verify the backup after it is written.", key="backup.auto_verify"
)
COMPRESSION: ZkOption[str] = ZkOption(
    "compression", OneOf(("none", "gzip", "zstd")), "gzip", "Compression of the stored files.", key="backup.compression"
)
COMPRESSION_LEVEL: ZkOption[int | None] = ZkOption(
    "compression-level", Int(1, 9), None, "1 (fastest) to 9 (smallest).", key="backup.compression_level",
    default_text="1",
)  # fmt: skip
AUTO_REPAIR: ZkOption[bool] = ZkOption(
    "auto-repair", Bool(), True, "Trim the end of the log that is being written without a warning.",
    key="backup.auto_repair",
)  # fmt: skip
CONCURRENT_COPIES: ZkOption[int] = ZkOption(
    "concurrent-copies", Int(1, 64), 4, "Number of files to copy in parallel.", key="backup.concurrent_copies"
)
INCLUDE_CONFIG: ZkOption[bool] = ZkOption(
    "include-config", Bool(), False, "Copy zoo.cfg, myid and similar files too, with passwords removed."
)
INCLUDE_SECRETS: ZkOption[bool] = ZkOption(
    "include-secrets", Bool(), False, "Copy them unchanged, with jaas.conf and key stores; never keytabs."
)
CONFIG_DIR: ZkOption[Path | None] = ZkOption(
    "zk-conf-dir",
    FilePath("DIR"),
    None,
    "Directory of zoo.cfg, java.env and jaas.conf.",
    default_text="the usual places",
)

FORCE: ZkOption[bool] = ZkOption("force", Bool(), False, "Do not ask for confirmation.")
DRY_RUN: ZkOption[bool] = ZkOption("dry-run", Bool(), False, "Show what would be done; change nothing.")
SKIP_VERIFY: ZkOption[bool] = ZkOption("skip-verify", Bool(), False, "Do not verify the backup first. Not recommended.")
TO_ZXID: ZkOption[int | None] = ZkOption(
    "to-zxid", ZxidNumber(), None, "Restore the tree as it was after this transaction.", also=("--truncate-to-zxid",),
    default_text="the end of the backup",
)  # fmt: skip
TO_TIME: ZkOption[int | None] = ZkOption(
    "to-time", Timestamp(), None, "Restore the tree as it was at this time, without anything later."
)
SESSIONS: ZkOption[str] = ZkOption(
    "sessions", OneOf(("keep", "drop")), "keep", "`drop` removes all sessions and their ephemeral znodes."
)
FORM: ZkOption[str] = ZkOption(
    "form", OneOf(("exact", "original")), "exact",
    "One exact snapshot of that point in time, or the archived files with the last log cut.",
)  # fmt: skip
BELIEVE: ZkOption[bool] = ZkOption(
    "believe", Bool(), False, "Also restore across ends of epochs that are not proven (before 3.6)."
)
ACCEPT_MISMATCH: ZkOption[str] = ZkOption(
    "accept-mismatch", Text("REASON"), "",
    "Restore although digests of the server contradict the tree. The receipt records the reason.",
)  # fmt: skip
ENSEMBLE: ZkOption[bool] = ZkOption(
    "ensemble", Bool(), False, "The target is a member of an ensemble: write epoch files."
)
MIN_EPOCH: ZkOption[int] = ZkOption("min-epoch", Int(), 0, "An epoch that was in use; the restored epoch is higher.")
ZK_VERSION: ZkOption[str] = ZkOption(
    "zk-version", Text("VERSION"), "", "Version of the server that will start, to refuse data that it cannot load."
)
CONTINUE: ZkOption[bool] = ZkOption("continue", Bool(), False, "Finish an interrupted restore of these directories.")
ROLLBACK: ZkOption[bool] = ZkOption(
    "rollback", Bool(), False, "Restore the data that these directories had before the last restore."
)
RESTORE_CONFIRMATION: ZkOption[bool] = ZkOption(
    "restore-confirmation", Bool(), True, "Ask before a restore.", key="restore.require_confirmation", flagless=True
)
VERIFY_BEFORE_RESTORE: ZkOption[bool] = ZkOption(
    "verify-before-restore", Bool(), True, "Verify before a restore.", key="restore.verify_before_restore",
    flagless=True,
)  # fmt: skip
BACKUP_BEFORE_RESTORE: ZkOption[bool] = ZkOption(
    "backup-before-restore", Bool(), True, "Keep the replaced data; must be true.",
    key="restore.backup_before_restore", flagless=True,
)  # fmt: skip

FIX: ZkOption[bool] = ZkOption("fix", Bool(), False, "Repair what can be repaired; originals are kept.")
LEVEL: ZkOption[str] = ZkOption(
    "level", OneOf(("files", "data", "replay", "boot")), "replay",
    "Depth: names and sizes, all checksums, a full replay, or a real server started on a copy.",
)  # fmt: skip

KEEP_DAYS: ZkOption[int] = ZkOption(
    "keep-days", Int(), 7, "Delete backups that are older; 0: any age is kept.", key="prune.keep_days"
)
KEEP_COUNT: ZkOption[int] = ZkOption(
    "keep-count", Int(), 0, "Maximum number of backups to keep.", default_text="0, no limit"
)
KEEP_MIN_COUNT: ZkOption[int] = ZkOption(
    "keep-min-count",
    Int(),
    3,
    "Minimum number of good backups to keep, whatever their age.",
    key="prune.keep_min_count",
)
DELETE_DAMAGED: ZkOption[bool] = ZkOption(
    "delete-damaged", Bool(), False, "Delete damaged backups too, by the same rules."
)
PRUNE_CONFIRMATION: ZkOption[bool] = ZkOption(
    "prune-confirmation", Bool(), True, "Ask before backups are deleted.", key="prune.require_confirmation",
    flagless=True,
)  # fmt: skip

FORMAT: ZkOption[str] = ZkOption(
    "format", OneOf(_TEXT_OR_JSON), "text", "Text, or one JSON document.", also=("--output-format",)
)
LIST_FORMAT: ZkOption[str] = ZkOption(
    "list-format", OneOf(("table", "json", "simple")), "table", "A table, one JSON document, or one id per line.",
    typed="format", also=("--output-format",),
)  # fmt: skip
SORT_BY: ZkOption[str] = ZkOption(
    "sort-by", OneOf(("time", "size", "zxid")), "time", "Sort order, newest or largest first."
)
LIMIT: ZkOption[int] = ZkOption("limit", Int(), 20, "Maximum number of backups to show; 0: all.")

CONFIG: ZkOption[Path | None] = ZkOption(
    "config", FilePath(), None, "Read this file instead of ./zkbackup.yaml.", variables=("ZKBACKUP_CONFIG",)
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
    "log-format", OneOf(_TEXT_OR_JSON), "text", "Log lines as text or JSON.", key="logging.format"
)
LOG_OUTPUT: ZkOption[str] = ZkOption(
    "log-output", OneOf(("stdout", "stderr", "file")), "stderr",
    "Where the log goes; stdout is not used with JSON output.", key="logging.output",
)  # fmt: skip
LOG_FILE: ZkOption[Path] = ZkOption(
    "log-file", FilePath(), Path("/var/log/zkbackup/zkbackup.log"), "The log file, with --log-output file.",
    key="logging.file",
)  # fmt: skip

MAX_RECORD_SIZE: ZkOption[int | None] = ZkOption(
    "max-txn-record-size", Size(), None, "Treat a longer transaction record as damage.",
    key="advanced.max_txn_record_size", default_text="the size of the file",
)  # fmt: skip
COPY_BUFFER_SIZE: ZkOption[int] = ZkOption(
    "copy-buffer-size", Size(minimum=4096), 1024 * 1024, "Bytes to read at a time.",
    key="advanced.copy_buffer_size",
)  # fmt: skip
VALIDATION_TIMEOUT: ZkOption[int | None] = ZkOption(
    "validation-timeout", Int(1, metavar="SECONDS"), None, "Fail a verification that takes longer.",
    key="advanced.validation_timeout", default_text="no limit",
)  # fmt: skip

SERVER: Final = (DATA_DIR, LOG_DIR, HOST, TIMEOUT)
COMMON: Final = (CONFIG, VERBOSE, QUIET, LOG_LEVEL, LOG_FORMAT, LOG_OUTPUT, LOG_FILE)

OPTIONS: Final[tuple[ZkOption[Any], ...]] = tuple(v for v in list(globals().values()) if isinstance(v, ZkOption))
"""All of them, in the order of this file."""
