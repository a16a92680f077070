"""The store of a real Zeebe 8.6.0: three partitions, backups 10 and 20, the second with snapshots."""

import tarfile
from pathlib import Path

_ARCHIVE = Path(__file__).parents[2] / "golden" / "zeebe" / "store-8.6.0.tar.xz"


def unpacked_store(root: Path) -> Path:
    with tarfile.open(_ARCHIVE) as archive:
        archive.extractall(root, filter="data")
    return root
