"""Whether the server that answers is the one whose files are copied: the files hold no identity, numbers must tell.

A server has processed what its snapshots hold, and what an earlier backup took over on its word; within moments it
processes all that it has logged. Who says less is another server, or a member whose word does not move on: it bounds
nothing here.
"""

from collections.abc import Iterable, Mapping

from logkeep.zookeeper.backup.server_files import FoundFile
from logkeep.zookeeper.backup.source_file import last_whole
from logkeep.zookeeper.server.four_letter import ServerState


def contradicted(state: ServerState, processed: Iterable[int]) -> bool:
    """`processed`: transactions that the server of these files must know: those of snapshots, and archived ones."""
    return state.zxid < max(processed, default=0)


def processes_all(state: ServerState, current_epoch: int | None) -> bool:
    """Whether it commits whatever it logs. A session does not tell the mode; members of ensembles have epoch files.

    A member of an ensemble logs what a majority may never agree to: where its word stays behind its log, it may be
    another server as well as one that waits for the others for good.
    """
    return state.mode == "standalone" or (not state.mode and current_epoch is None)


def logged_to(logs: Iterable[FoundFile], ends: Mapping[str, int], largest: int | None, chunk_bytes: int) -> int:
    """The last whole record behind those that were read (`ends`, by file); 0 when there is none."""
    for log in sorted(logs, key=lambda log: log.zxid, reverse=True):
        last = last_whole(log.path, ends.get(log.path.name, 0), largest, chunk_bytes)
        if last:
            return last
    return 0
