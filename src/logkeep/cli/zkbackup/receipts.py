"""The receipt of a restore, beside the data that it speaks of and for its owner alone.

It is on disk before the first file is moved, as `.unfinished`: a restore that dies then and is continued has nothing
left to ask but this. It gets its own name when the new data is in place, and goes when the old one is back.
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
    """What it will say, before anything is moved. Raises RestoreFailed."""
    path = unfinished_path(receipt.targets[0].data_dir, receipt.restore)
    try:
        replace_file(path, _encoded(receipt))
    except OSError as error:
        what = f"the receipt cannot be written: {(error.strerror or 'the system refused').lower()}"
        raise RestoreFailed(what, subject=str(path), remedy="make room there, and run again") from error


def settle(data_dir: str, restore: str, now: datetime) -> Path | None:
    """The new data is in place: the path of its receipt; None where there is none and nobody can write one.

    Raises OSError or msgspec's errors; what it would say stays `.unfinished` then.
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
    """The old data is in place, and nothing was restored that a receipt could tell of."""
    with suppress(OSError):  # it says itself that it is unfinished
        unfinished_path(data_dir, restore).unlink(missing_ok=True)


def _encoded(receipt: RestoreReceipt) -> bytes:
    return msgspec.json.format(msgspec.json.encode(receipt), indent=2) + b"\n"
