"""Checks that the server that answers is the one whose files are copied. Files hold no identity, so zxids decide.

A server has processed what its snapshots contain, and what it reported in an earlier backup; it soon processes all that
it has logged. One that reports less is another server, or a member that makes no progress: its answer bounds nothing.
"""

from collections.abc import Iterable, Mapping

from logkeep.zookeeper.backup.server_files import FoundFile
from logkeep.zookeeper.backup.source_file import last_whole
from logkeep.zookeeper.server.four_letter import ServerState


def contradicted(state: ServerState, processed: Iterable[int]) -> bool:
    """`processed`: transactions that the server of these files must know: those of snapshots, and archived ones."""
    return state.zxid < max(processed, default=0)


def processes_all(state: ServerState, current_epoch: int | None) -> bool:
    """Whether it commits everything it logs. A session does not show the mode; members of ensembles have epoch files.

    A member of an ensemble logs what a majority may never accept: if its answer stays below its log, it may be another
    server, or a member that waits for the others.
    """
    return state.mode == "standalone" or (not state.mode and current_epoch is None)


def logged_to(logs: Iterable[FoundFile], ends: Mapping[str, int], largest: int | None, chunk_bytes: int) -> int:
    """The last whole record after those that were read (`ends`, by file); 0 if there is none."""
    for log in sorted(logs, key=lambda log: log.zxid, reverse=True):
        last = last_whole(log.path, ends.get(log.path.name, 0), largest, chunk_bytes)
        if last:
            return last
    return 0
