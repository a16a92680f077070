"""`logkeep drill` of a backup of an application: restored into a temporary directory, opened, and compared."""

import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from logkeep.application.data_directory import ApplicationDocument, DirectoryLock, read_directory
from logkeep.application.drill import DrilledPartition, open_partitions
from logkeep.checkpoint.restore.plan import ApplicationRestorePlan
from logkeep.checkpoint.restore.run import RestoredApplication, holding, prepare, restore
from logkeep.checkpoint.steps import run as run_steps
from logkeep.cli.frame.execute import Run
from logkeep.cli.wiring import chosen_engine, note_failed, restores_place
from logkeep.errors import LogkeepError
from logkeep.kinds import APPLICATION
from logkeep.model.findings import Finding, Severity
from logkeep.model.time import rfc3339
from logkeep.reports.drill import SCRATCH, DrilledApplication, DrillReport, drill_report
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.documents import seal
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.chain.owner import this_process
from logkeep.repository.restores import NewRestore, ReceiptDocument, RestoreTargetRef, RestoreVerdict
from logkeep.repository.restores.stored import StoredRestore

_WHERE = "temporary directory"


def drill_application(run: Run, place: SourceRef, entry: BackupEntry) -> DrillReport:
    state = restores_place(run, place, create=True)
    plan = prepare(place, read_chain(place), entry.id)
    with (
        tempfile.TemporaryDirectory(prefix=SCRATCH) as made,
        holding(place, plan, this_process(run.token()), run.token) as chain,
    ):
        new = NewRestore(
            backup=entry.id,
            kind=APPLICATION.name,
            target=RestoreTargetRef(cluster_id="", name=_WHERE),
            body=msgspec.json.encode(plan),
            drill=True,
        )
        stored = StoredRestore.begin(state, new, run.clock, run.token)
        try:
            done, opened = _drilled(run, place, chain, plan, Path(made).resolve())
        except LogkeepError as error:
            note_failed(run, stored, error)
            raise
        verdict, findings = judge(opened)
        receipt = stored.ended(verdict, findings, _facts(opened))
    return _report(place.source, done, opened, receipt)


def _drilled(
    run: Run, place: SourceRef, chain: Folded, plan: ApplicationRestorePlan, scratch: Path
) -> tuple[RestoredApplication, list[DrilledPartition]]:
    """Restore as `app restore` does, but reserve no history: nothing will ever run here."""
    directory = scratch / "data"
    directory.mkdir(mode=0o700)
    document = ApplicationDocument(
        repository="", application=plan.application, name=plan.name, partitions=len(plan.partitions),
        history=plan.history + 1, created=rfc3339(run.clock()),
    )  # fmt: skip
    lock = DirectoryLock(directory)
    try:
        label = f"{plan.checkpoint}-{run.token()}"
        steps = restore(place, chain, plan, directory, seal(document), label, lambda total: chosen_engine(run, total))
        done = run_steps(steps, threading.Event().wait)
        return done, open_partitions(read_directory(directory), plan, scratch / "opened")
    finally:
        lock.release()


def judge(opened: Sequence[DrilledPartition]) -> tuple[RestoreVerdict, tuple[Finding, ...]]:
    """Proven if every partition that was opened has the state that the backup recorded."""
    wrong = tuple(
        Finding(
            code="state-differs",
            severity=Severity.DAMAGE,
            where=f"partition {each.partition}",
            what="the opened partition has another state than the one that was backed up",
            remedy="`logkeep verify --level cut` names the records",
        )
        for each in opened
        if each.compared and not each.proven
    )
    if wrong:
        return RestoreVerdict.FAILED, wrong
    every = all(each.compared for each in opened)
    return (RestoreVerdict.PROVEN if every else RestoreVerdict.UNPROVEN), ()


def _facts(opened: Sequence[DrilledPartition]) -> Mapping[str, str]:
    return {
        f"partition {each.partition}": f"replayed to {each.replayed_to}, "
        + ("proven" if each.proven else "different" if each.compared else "not compared")
        for each in opened
    }


def _report(
    source: str, done: RestoredApplication, opened: Sequence[DrilledPartition], receipt: ReceiptDocument
) -> DrillReport:
    return drill_report(
        source,
        receipt,
        _WHERE,
        sum(each.log_bytes + each.snapshot_bytes for each in done.partitions),
        application=DrilledApplication(
            partitions=len(opened),
            partitions_proven=sum(each.proven for each in opened),
            positions=sum(each.records for each in done.partitions),
        ),
    )
