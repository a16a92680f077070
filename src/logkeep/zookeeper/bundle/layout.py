"""Names of bundles, and of files in a bundle. No other module builds or parses them.

DIR/<id>/snapshots/snapshot.<zxid>[.gz|.zst]
DIR/<id>/txnlogs/log.<zxid>[.gz|.zst]
DIR/<id>/metadata/backup_info.json  MANIFEST.txt  zk_mntr.txt  zk_stat.txt  zk_conf.txt
DIR/<id>/config/…                                   only with --include-config
DIR/<id>/damaged/<name>                             files that are not whole, as they were found
DIR/<id>/logs/backup.log  verify.log
DIR/.<id>.partial/                                  being written, or left by a run that was killed
"""

import re
from datetime import UTC, datetime
from pathlib import Path

from logkeep.errors import UsageError
from logkeep.formats.zookeeper.names import parse_name

SNAPSHOTS, TXNLOGS, METADATA, CONFIG, LOGS = "snapshots", "txnlogs", "metadata", "config", "logs"
DAMAGED = "damaged"
INFO = "backup_info.json"
MANIFEST = "MANIFEST.txt"
MNTR, STAT, CONF = "zk_mntr.txt", "zk_stat.txt", "zk_conf.txt"
BACKUP_LOG, VERIFY_LOG = "backup.log", "verify.log"
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def checked_id(text: str) -> str:
    """An id that can be the name of a directory, and only that. Raises UsageError."""
    if not _ID.fullmatch(text) or text.startswith(".") or text in {".", ".."}:
        raise UsageError(
            f"{text!r} cannot be a backup id", remedy="use 1 to 64 letters, digits, '.', '_' or '-', no dot in front"
        )
    if parse_name(text) is not None:
        raise UsageError(f"{text!r} cannot be a backup id: ZooKeeper's own files have such names", remedy="use another")
    return text


def default_id(now: datetime) -> str:
    return f"backup-{now.astimezone(UTC):%Y%m%d-%H%M%S}"


def partial(directory: Path, backup_id: str) -> Path:
    return directory / f".{backup_id}.partial"


def info_path(bundle: Path) -> Path:
    return bundle / METADATA / INFO
