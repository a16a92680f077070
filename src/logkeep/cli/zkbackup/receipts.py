"""The receipt of a restore: a file beside the restored data, readable by its owner only.

It is on disk before the first file is moved, as `.unfinished`: a restore that is killed and continued later reads it
from there. It gets its final name when the new data is in place, and is deleted when the old data is back.
"""

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from logkeep.errors import RestoreFailed
from logkeep.model.time import rfc3339
from logkeep.store.local_files import sync_path
from logkeep.zookeeper.bundle.info_file import replace_file
from logkeep.zookeeper.restore.values import RestoreReceipt

_LARGEST: Final = 1 << 26


def receipt_path(data_dir: str, restore: str) -> Path:
    return Path(data_dir, f"version-2.receipt-{restore}.json")


def unfinished_path(data_dir: str, restore: str) -> Path:
    return Path(data_dir, f"version-2.receipt-{restore}.unfinished")


def write_ahead(receipt: RestoreReceipt) -> None:
    """Write the receipt before any file is moved. Raises RestoreFailed."""
    path = unfinished_path(receipt.targets[0].data_dir, receipt.restore)
    try:
        replace_file(path, _encoded(receipt))
    except OSError as error:
        what = f"the receipt cannot be written: {(error.strerror or 'the system refused').lower()}"
        raise RestoreFailed(what, subject=str(path), remedy="free space there, and run again") from error


def complete(data_dir: str, restore: str, now: datetime) -> Path | None:
    """Give the receipt its final name; the new data is in place. None where no receipt was written.

    Raises OSError or msgspec's errors; the `.unfinished` file then stays.
    """
    path, ahead = receipt_path(data_dir, restore), unfinished_path(data_dir, restore)
    if path.exists():
        return path
    if not ahead.exists():
        return None
    with ahead.open("rb") as file:
        receipt = msgspec.json.decode(file.read(_LARGEST), type=RestoreReceipt)
    replace_file(path, _encoded(msgspec.structs.replace(receipt, finished=rfc3339(now))))
    ahead.unlink()
    sync_path(path.parent)
    return path


def drop(data_dir: str, restore: str) -> None:
    """Delete the unfinished receipt: the old data is in place."""
    with suppress(OSError):  # its name says that it is unfinished
        unfinished_path(data_dir, restore).unlink(missing_ok=True)


def _encoded(receipt: RestoreReceipt) -> bytes:
    return msgspec.json.format(msgspec.json.encode(receipt), indent=2) + b"\n"
