"""Where Zeebe stores manifests and files of its backups. Pure.

The copy of partition P in backup N by broker B is under `P/N/B` (S3, up to 8.8), or its manifest is under
`manifests/P/N/B` and its files under `contents/P/N/B` (file systems, and S3 since 8.9).
"""

import re
from dataclasses import dataclass

from logkeep.formats.zeebe.manifests import MAX_PARTITIONS

MANIFEST = "manifest.json"
SNAPSHOT, SEGMENTS = "snapshot", "segments"
_NUMBER = r"(0|[1-9][0-9]{0,18})"
_NAME = re.compile(rf"(?:(manifests|contents)/)?{_NUMBER}/{_NUMBER}/{_NUMBER}/(.+)")
_MAX_LONG = (1 << 63) - 1


@dataclass(frozen=True, order=True)
class CopyPlace:
    """One broker's copy of one partition of one backup."""

    checkpoint_id: int
    partition: int
    node: int
    split: bool = False
    """Manifest and files are under different names."""

    @property
    def manifest(self) -> str:
        return f"{'manifests/' if self.split else ''}{self._ids}/{MANIFEST}"

    def file(self, folder: str, name: str) -> str:
        """The object of a file in the folder SNAPSHOT or SEGMENTS."""
        return f"{self.files}{folder}/{name}"

    @property
    def files(self) -> str:
        """The prefix of its files."""
        return f"{'contents/' if self.split else ''}{self._ids}/"

    @property
    def _ids(self) -> str:
        return f"{self.partition}/{self.checkpoint_id}/{self.node}"


def place_of(name: str) -> CopyPlace | None:
    """The copy that an object belongs to; None for an object of no copy."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    partition, checkpoint, node = (int(part) for part in found.groups()[1:4])
    if not 1 <= partition <= MAX_PARTITIONS or checkpoint > _MAX_LONG or node > _MAX_LONG:
        return None
    return CopyPlace(checkpoint, partition, node, split=found[1] is not None)
