"""Bundles that hold documents and no data: enough for what only reads documents. And calling `zkbackup`.

Calls are made in this process: a program that loads numba takes a second to start, and there are many calls. The entry
point is the program's own, below the parsing of `sys.argv`; a few tests start real processes (`PROGRAM`).
"""

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from logkeep.cli.frame.world import World
from logkeep.cli.terminal.console import standard_console
from logkeep.cli.zkbackup.main import PROGRAM as ZKBACKUP
from logkeep.cli.zkbackup.settings import places
from tests.support.cli.streams import logs_as_before, text_of

PROGRAM = (sys.executable, "-m", "logkeep.cli.zkbackup")


def zkbackup(*arguments: str, home: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """One call, with `home` as home and working directory, and nobody to be asked."""
    kept = {name: os.environ[name] for name in ("PATH", "LOGKEEP_CACHE_DIR", "XDG_CACHE_HOME") if name in os.environ}
    environ = {**kept, "HOME": str(home), "LANG": "C.UTF-8", **(env or {})}
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err), logs_as_before():
        world = World(
            environ=environ,
            console=standard_console(environ),
            places=lambda named: places(environ, home, named, home / "etc.yaml"),
            json=ZKBACKUP.asks_for_json(arguments),
        )
        code = ZKBACKUP.call(list(arguments), world)
    return subprocess.CompletedProcess(arguments, code, text_of(out), text_of(err))


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
