"""The receipt of a restore: a file beside the restored data, readable by its owner only.

It is on disk before the first file is moved, as `.unfinished`: a restore that is killed and continued later reads it
from there. It gets its final name when the new data is in place, and is deleted when the old data is back.
"""

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from logkeep.directories.folder import Folder
from logkeep.errors import LogkeepError, RestoreFailed
from logkeep.model.time import rfc3339
from logkeep.zookeeper.restore.disk import Disk
from logkeep.zookeeper.restore.target.state import owner_like
from logkeep.zookeeper.restore.values import FileOwner, RestoreReceipt

_LARGEST: Final = 1 << 26


def receipt_path(data_dir: str, restore: str) -> Path:
    return Path(data_dir, f"version-2.receipt-{restore}.json")


def unfinished_path(data_dir: str, restore: str) -> Path:
    return Path(data_dir, f"version-2.receipt-{restore}.unfinished")


def write_ahead(folder: Folder, receipt: RestoreReceipt) -> None:
    """Write the receipt to the dataDir before any file is moved. Raises RestoreFailed."""
    name = unfinished_path("", receipt.restore).name
    try:
        _replace(folder, name, _encoded(receipt))
    except RestoreFailed as error:
        what, remedy = f"the receipt cannot be written: {error.what}", "free space there, and run again"
        raise RestoreFailed(what, subject=str(folder.path / name), remedy=remedy) from error


def complete(folder: Folder, restore: str, now: datetime) -> Path | None:
    """Give the receipt its final name; the new data is in place. None where no receipt was written.

    Raises OSError, LogkeepError or msgspec's errors; the `.unfinished` file then stays.
    """
    name, ahead = receipt_path("", restore).name, unfinished_path("", restore).name
    if folder.find(name) is not None:
        return folder.path / name
    if folder.find(ahead) is None:
        return None
    with open(folder.open_file(ahead), "rb") as file:  # noqa: PTH123 - a descriptor has no path
        receipt = msgspec.json.decode(file.read(_LARGEST), type=RestoreReceipt)
    _replace(folder, name, _encoded(msgspec.structs.replace(receipt, finished=rfc3339(now))))
    folder.remove(ahead)
    folder.sync()
    return folder.path / name


def drop(folder: Folder, restore: str) -> None:
    """Delete the unfinished receipt: the old data is in place."""
    with suppress(OSError, LogkeepError):  # its name says that it is unfinished
        folder.remove(unfinished_path("", restore).name)


def _replace(folder: Folder, name: str, content: bytes) -> None:
    owner = owner_like(folder)
    try:
        Disk().replace(folder, name, content, FileOwner(owner.uid, owner.gid, 0o600, owner.directory_mode))
    except LogkeepError:
        with suppress(OSError):
            folder.remove(f".{name}.new")
        raise


def _encoded(receipt: RestoreReceipt) -> bytes:
    return msgspec.json.format(msgspec.json.encode(receipt), indent=2) + b"\n"
