"""Backups by OSO's own crate: the program beside this file, built by `make oso`, run with a configuration."""

import json
import os
import subprocess
from pathlib import Path

from tests.support.processes import PATIENCE_S

PROGRAM = "LOGKEEP_OSO_PROGRAM"


def take_backup(bootstrap: str, root: Path, name: str, *topics: str, **options: object) -> Path:
    """One backup up to the current end of the topics; again: what is new. Returns its directory."""
    document = {
        "mode": "backup",
        "backup_id": name,
        "source": {"bootstrap_servers": [bootstrap], "topics": {"include": list(topics)}},
        "storage": {"backend": "filesystem", "path": str(root)},
        "backup": {"stop_at_current_offsets": True, **options},
        "offset_storage": {"backend": "sqlite", "db_path": str(root / f"{name}.db")},
        "metrics": {"enabled": False},
    }
    configuration = root / f"{name}.json"
    root.mkdir(exist_ok=True)
    configuration.write_text(json.dumps(document))
    command = [os.environ[PROGRAM], str(configuration)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return root / name
