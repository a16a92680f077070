"""What runs in forked processes: a backup with a fault planned for one store call. Imports no obstore by itself."""

import os
from collections.abc import Callable

from logkeep.engine.inline import InlineEngine
from logkeep.errors import LogkeepError
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.access import open_store
from logkeep.store.retrying import RetryingStore
from tests.support.faults.plan import Fault, KillAfter, Plan, Scripted, lost_ack, no_faults
from tests.support.faults.store import FaultyStore
from tests.support.scripted.backup import back_up as scripted_back_up

KILLED_AFTER, ANSWER_LOST, NO_FAULT = "killed after", "answer lost", "none"


def back_up(
    *,
    start: Callable[[], None],
    url: str,
    repository: str,
    ends: dict[str, int],
    fault: str = NO_FAULT,
    call: int = 0,
    environment: dict[str, str] | None = None,
) -> dict[str, object]:
    """Back up the scripted source; tells the id, or the kind of the error, and how many store calls were made."""
    os.environ.update(environment or {})
    faulty = FaultyStore(open_store(url), _plan(fault, call))
    place = SourceRef(RetryingStore(faulty), repository, "prod")
    start()
    wanted = {int(partition): end for partition, end in ends.items()}
    try:
        entry = scripted_back_up(place, wanted, InlineEngine(), utc_now, random_token)
    except LogkeepError as error:
        return {"error": type(error).__name__, "what": str(error), "calls": len(faulty.calls)}
    return {"id": entry.id, "generation": entry.generation, "calls": len(faulty.calls)}


def _plan(fault: str, call: int) -> Plan:
    if fault == KILLED_AFTER:
        return KillAfter(call)
    return Scripted({call: _lost()}) if fault == ANSWER_LOST else no_faults


def _lost() -> Fault:
    return lost_ack()
