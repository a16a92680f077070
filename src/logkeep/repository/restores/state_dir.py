"""A local directory that takes the documents of restores when the repository itself may only be read.

The names and the bytes are the same as in the repository, and so is the repository's id in them: a directory that
was used with another repository does not fit.
"""

from dataclasses import replace
from pathlib import Path

from logkeep.repository.chain.commits import SourceRef
from logkeep.store.address import create_place, open_store


def state_place(place: SourceRef, directory: Path, *, create: bool = False) -> SourceRef:
    """The same source, with its restores in a directory. A restore has it made when it is not there, mode 0700."""
    url = str(directory.absolute())
    if create:
        create_place(url)
    return replace(place, store=open_store(url))
