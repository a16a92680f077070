"""Plan and receipt of an application's restore, in the repository: the plan is stored before anything is changed.

Neither is needed to continue: after an interruption the same command ends or repeats the restore, under a new id.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import msgspec

from logkeep.checkpoint.archive.take import KIND
from logkeep.checkpoint.restore.plan import ApplicationRestorePlan
from logkeep.checkpoint.restore.stage_task import StagedPartition
from logkeep.errors import LogkeepError, RestoreFailed, StoreError
from logkeep.model.plurals import plural
from logkeep.model.time import Clock, TokenSource
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores import NewRestore, RestoreTargetRef, RestoreVerdict
from logkeep.repository.restores.stored import StoredRestore


@contextmanager
def recorded(
    place: SourceRef, plan: ApplicationRestorePlan, target: str, clock: Clock, tokens: TokenSource
) -> Iterator[StoredRestore]:
    """Store the plan, and a receipt of an error that ends the restore. Raises StoreDenied."""
    new = NewRestore(
        backup=plan.backup,
        kind=KIND,
        target=RestoreTargetRef(cluster_id="", name=target),
        body=msgspec.json.encode(plan),
        options={"checkpoint": str(plan.checkpoint)},
    )
    stored = StoredRestore.begin(place, new, clock, tokens)
    try:
        yield stored
    except (LogkeepError, OSError) as error:
        with suppress(LogkeepError):  # the error that ended the restore must not be hidden
            stored.failed(error if isinstance(error, LogkeepError) else RestoreFailed(str(error)), target)
        raise


def put_receipt(stored: StoredRestore, history: int, staged: Sequence[StagedPartition]) -> None:
    """Once the restored application can be started. Raises StoreError, which says so."""
    every = all(one.proven for one in staged)
    facts = {"checkpoint": stored.plan.options["checkpoint"], "history": str(history)}
    for one in staged:
        proven = "proven" if one.proven else "not compared"
        facts[f"partition {one.partition}"] = f"{plural(one.records, 'position')} of the log, {proven}"
    try:
        stored.ended(RestoreVerdict.PROVEN if every else RestoreVerdict.UNPROVEN, facts=facts)
    except StoreError as error:
        error.what = f"the application is restored, but its receipt cannot be stored: {error.what}"
        error.remedy = "start the application; nothing needs to be repeated"
        raise
