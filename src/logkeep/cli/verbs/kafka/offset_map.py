"""Write a stored map of offsets as CSV, to a new file or to stdout."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from logkeep.cli.terminal.console import Console
from logkeep.errors import UsageError
from logkeep.model.ids import RestoreId
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores import read_map


def write_map(console: Console, place: SourceRef, restore_id: RestoreId, ref: ObjectRef, path: Path | None) -> None:
    """Write the whole map; None is stdout. An existing file is not changed. Raises UsageError and Damaged."""
    from logkeep.formats.run_map.csv_text import csv_chunks  # noqa: PLC0415 - Arrow, as well
    from logkeep.formats.run_map.file_format import unbundle  # noqa: PLC0415 - numpy, only when a map is wanted

    subject = f"map of restore {restore_id}"
    chunks = csv_chunks(unbundle(read_map(place, restore_id, ref), subject), subject)
    if path is None:
        for chunk in chunks:
            console.answer(chunk.decode())
        return
    try:
        with path.open("xb") as file, _removed_when_unfinished(path):
            file.writelines(chunks)
    except FileExistsError:
        raise UsageError("this file already exists", subject=str(path), remedy="choose another, or remove it") from None
    except OSError as error:
        raise UsageError(
            f"the map cannot be written: {error.strerror}", subject=str(path), remedy="choose another place"
        ) from error


@contextmanager
def _removed_when_unfinished(path: Path) -> Iterator[None]:
    """Remove an incomplete map: it would look like a complete one."""
    try:
        yield
    except BaseException:
        path.unlink()
        raise
