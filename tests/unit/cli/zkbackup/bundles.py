"""Bundles that hold documents and no data: enough for what only reads documents. And calling `zkbackup`."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.unit.cli.calling import logkeep

PROGRAM = (sys.executable, "-m", "logkeep.cli.zkbackup")


def zkbackup(
    *arguments: str, home: Path, env: dict[str, str] | None = None, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    return logkeep(*arguments, home=home, program=PROGRAM, env={"TZ": "UTC", **(env or {})}, stdin=stdin)


def info(name: str, taken: datetime, **changes: Any) -> dict[str, Any]:
    """As the design's example, with what was added to it."""
    return {
        "version": "1.0",
        "backup_id": name,
        "backup_timestamp": taken.isoformat(),
        "backup_zxid": {"hex": "0x500000001", "decimal": 0x500000001},
        "zookeeper": {
            "version": "3.8.0", "host": "localhost:2181",
            "data_dir": "/zookeeper/data/version-2", "log_dir": "/zookeeper/datalog/version-2",
        },
        "files": {"snapshots": [], "txnlogs": []},
        "validation": {"enabled": True, "status": "valid", "quality_score": 100},
        "statistics": {"total_size": 104857600, "compressed_size": 52428800, "duration_seconds": 12.5},
        **changes,
    }  # fmt: skip


def put(base: Path, name: str, *, days: float = 0, status: str = "valid", size: int = 1024, zxid: int = 1) -> Path:
    """A bundle of that age."""
    taken = datetime.now(UTC) - timedelta(days=days)
    document = info(
        name, taken, backup_zxid={"hex": hex(zxid), "decimal": zxid},
        validation={"enabled": True, "status": status}, statistics={"total_size": size},
    )  # fmt: skip
    path = base / name / "metadata" / "backup_info.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(document))
    return path.parent.parent
