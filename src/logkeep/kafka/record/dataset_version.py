"""The name and the version of a dataset's document, `.logkeep/dataset.json`: for writers, and for imports."""

from typing import Final

import msgspec

from logkeep.errors import FormatTooNew

FOLDER: Final = ".logkeep"
DOCUMENT: Final = f"{FOLDER}/dataset.json"
NEWEST: Final = 1


class _Version(msgspec.Struct):
    version: int = NEWEST


def refuse_newer(data: bytes, where: str) -> None:
    """Raises FormatTooNew for a document of a later release, and msgspec's errors for one that is no JSON object."""
    version = msgspec.json.decode(data, type=_Version).version
    if version > NEWEST:
        raise FormatTooNew(f"the dataset has version {version}; this release knows {NEWEST}", subject=where)
