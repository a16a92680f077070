"""What runs in forked processes: work with a fault planned for one store call. Imports no obstore by itself."""

import os
from collections.abc import Callable

from logkeep.engine.inline import InlineEngine
from logkeep.errors import LogkeepError
from logkeep.kafka.dataset_upkeep.dataset import open_existing
from logkeep.kafka.dataset_upkeep.prune import PrunedPartition, delete_segments
from logkeep.kafka.dataset_upkeep.reindex import reindex_partition
from logkeep.kafka.dataset_upkeep.segments import segments_of
from logkeep.kafka.dataset_upkeep.verify import read_back
from logkeep.kafka.datasets.dataset_lock import lock_dataset
from logkeep.kafka.datasets.formats import DatasetOptions
from logkeep.kafka.datasets.run import DatasetExport, ExportOptions
from logkeep.kafka.datasets.sources.export_sources import BackupSource
from logkeep.kafka.datasets.sources.selection import ExportSelection
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.fold.plan import FoldOptions
from logkeep.kafka.fold.run import LogFolding
from logkeep.kafka.scan.open_backup import open_backup
from logkeep.kafka.scan.values import ScanIsolation
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import collect
from logkeep.repository.upkeep.trim import commit_trim, measure_trim
from logkeep.store.access import open_store
from logkeep.store.retrying import RetryingStore
from tests.crash.points import AT_ONCE
from tests.support.faults.plan import Fault, KillAfter, Plan, Scripted, lost_ack, no_faults
from tests.support.faults.store import FaultyStore
from tests.support.kafka.generation_cycle import continued, renew
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
    faulty = FaultyStore(open_store(url), plan_of(fault, call))
    place = SourceRef(RetryingStore(faulty), repository, "prod")
    start()
    wanted = {int(partition): end for partition, end in ends.items()}
    try:
        entry = scripted_back_up(place, wanted, InlineEngine(), utc_now, random_token)
    except LogkeepError as error:
        return {"error": type(error).__name__, "what": str(error), "calls": len(faulty.calls)}
    return {"id": entry.id, "generation": entry.generation, "calls": len(faulty.calls)}


def fold(
    *, start: Callable[[], None], url: str, repository: str, fault: str, call: int, environment: dict[str, str]
) -> dict[str, object]:
    """Fold every compacted log; tells how many store calls were made."""
    os.environ.update(environment)
    faulty = FaultyStore(open_store(url), plan_of(fault, call))
    start()
    fold_all(SourceRef(faulty, repository, "prod"))
    return {"calls": len(faulty.calls)}


def trim(
    *, start: Callable[[], None], url: str, repository: str, fault: str, call: int, environment: dict[str, str]
) -> dict[str, object]:
    """Trim the backups of the scripted source, and collect what no backup needs any more."""
    os.environ.update(environment)
    faulty = FaultyStore(open_store(url), plan_of(fault, call))
    start()
    trim_and_collect(SourceRef(faulty, repository, "prod"))
    return {"calls": len(faulty.calls)}


def generation(
    *, start: Callable[[], None], url: str, repository: str, fault: str, call: int, environment: dict[str, str]
) -> dict[str, object]:
    """Renew the generation of a compacted topic, and delete old backups; tells how many store calls were made."""
    os.environ.update(environment)
    store = open_store(url)
    made, faulty = continued(SourceRef(store, repository, "prod")), FaultyStore(store, plan_of(fault, call))
    start()
    renew(made, faulty)
    return {"calls": len(faulty.calls)}


def export_dataset(
    *,
    start: Callable[[], None],
    url: str,
    repository: str,
    repository_id: str,
    backup: str,
    form: str,
    rewrite: bool = False,
    fault: str,
    call: int,
    environment: dict[str, str],
) -> dict[str, object]:
    """Export a backup of a repository in a directory, a record per file; tells how many store calls were made. With
    `rewrite` its topic is written anew, in large files."""
    os.environ.update(environment)
    faulty = FaultyStore(open_store(url), plan_of(fault, call))
    place = SourceRef(open_store(repository), repository_id, "prod")
    start()
    with open_backup(place, backup, "export", utc_now, random_token) as view:
        files = DatasetOptions(1 << 20 if rewrite else 1)
        options = ExportOptions(form, ScanIsolation.COMMITTED, files, ("state",) if rewrite else ())
        source = BackupSource.of(view, ExportSelection(), ScanIsolation.COMMITTED)
        DatasetExport(DatasetTarget(faulty), options, read_back).run(source, lambda _: InlineEngine())
    return {"calls": len(faulty.calls)}


def keep_up_dataset(
    *, start: Callable[[], None], url: str, verb: str, fault: str, call: int, environment: dict[str, str]
) -> dict[str, object]:
    """Prune a dataset to the last segment of each partition, or write its indexes again; tells how many store calls."""
    os.environ.update(environment)
    faulty = FaultyStore(open_store(url), plan_of(fault, call))
    start()
    with lock_dataset(DatasetTarget(faulty)) as held:
        dataset = open_existing(held.target)
        if verb == "prune":
            some = segments_of(dataset).items()
            gone = [PrunedPartition(*log, segments[:-1], 1, "") for log, segments in some]
            files = len(list(delete_segments(dataset.target, dataset.document, gone)))
        else:
            files = sum(
                each.written
                for log, found in dataset.v1.items()
                for each in reindex_partition(dataset.target, *log, found, dry_run=False)
            )
    return {"calls": len(faulty.calls), "files": files}


def fold_all(place: SourceRef) -> int:
    done = LogFolding(place, utc_now, random_token).run(FoldOptions(), lambda _: InlineEngine())
    assert not any(each.problem for each in done)
    return sum(each.committed for each in done)


def trim_and_collect(place: SourceRef) -> None:
    """Every log of the older backups begins where that of the newest one does."""
    newest = read_chain(place).completed[-1]
    floors = {cut.log: cut.start for cut in read_manifest(place, newest).cut}
    with writing(place, "prune", utc_now, random_token) as session:
        commit_trim(session, measure_trim(place, session.folded, newest.id, floors), (), "test")
    with writing(place, "gc", utc_now, random_token) as session:
        collect(session, AT_ONCE)
        collect(session, AT_ONCE)


def plan_of(fault: str, call: int) -> Plan:
    if fault == KILLED_AFTER:
        return KillAfter(call)
    return Scripted({call: _lost()}) if fault == ANSWER_LOST else no_faults


def _lost() -> Fault:
    return lost_ack()
