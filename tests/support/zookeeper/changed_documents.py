"""Documents of bundles that say something else than they did, for tests."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from logkeep.zookeeper.bundle.info_file import sealed_again
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot


def rewritten(bundle: Path, change: Callable[[dict[str, Any]], object], *, sealed: bool) -> None:
    """`sealed`: as if a backup had written it so; otherwise as if a disk had."""
    path = bundle / "metadata" / "backup_info.json"
    document = json.loads(path.read_text())
    change(document)
    path.chmod(0o600)
    path.write_text(json.dumps(sealed_again(document) if sealed else document))


def stored_path(view: BundleView, kept: ArchivedSnapshot | ArchivedLog) -> Path:
    """The file of a bundle that holds a snapshot or a log."""
    kind, entry = view._entry(kept)
    return view.path / kind / entry.stored_name
