"""`logkeep drill` of a backup of ZooKeeper: a restore into a temporary directory, and a real server on it."""

import tempfile
from pathlib import Path

from logkeep.cli.frame.execute import Run
from logkeep.cli.verbs.zookeeper.restore.verb import asked_moment, passed_over
from logkeep.cli.wiring import note_failed, restores_place
from logkeep.config.options import ZK_MOMENT, Options
from logkeep.embedded.zookeeper_boot import MAXBUFFER, boot_of, nearest_release, version_of
from logkeep.errors import ClusterError, EngineUnavailable, LogkeepError, ServerFailed
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.ids import BackupId
from logkeep.reports.drill import SCRATCH, DrilledTree, DrillReport, drill_report
from logkeep.repository.backups.holds import reading
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry
from logkeep.repository.chain.owner import this_process
from logkeep.repository.restores import ReceiptDocument, RestoreVerdict
from logkeep.repository.restores.stored import StoredRestore
from logkeep.zookeeper.repo.view import ArchiveView, view_of
from logkeep.zookeeper.restore.drill import DrillOutcome, drill
from logkeep.zookeeper.restore.prepare import PreparedRestore, prepare
from logkeep.zookeeper.restore.receipts import PlanBody, ZooKeeperRestoreStart, begin, facts_of, verdict_of
from logkeep.zookeeper.restore.run import journal_name
from logkeep.zookeeper.restore.values import ServerTarget, Sessions, ZooKeeperRestoreOptions
from logkeep.zookeeper.timeline.verified_path import VerifiedPath, choose

_STORED_OPTIONS: Options = ZK_MOMENT


def drill_zookeeper(run: Run, place: SourceRef, entry: BackupEntry) -> DrillReport:
    state = restores_place(run, place, create=True)
    with (
        tempfile.TemporaryDirectory(prefix=SCRATCH) as made,
        reading(place, BackupId(entry.id), this_process(run.token()), "drill", run.token) as held,
    ):
        data_dir = Path(made).resolve() / "data"
        data_dir.mkdir(mode=0o700)
        began = run.world.monotonic()
        view = view_of(place, held)
        chosen = choose(view, asked_moment(run))
        prepared = prepare(view, chosen.path, _restore_options(data_dir), replayed=chosen.replayed)
        before_s = run.world.monotonic() - began
        done, receipt = _run_drill(run, state, view, prepared, chosen, data_dir, before_s)
    return _report(place.source, view, prepared, done, receipt)


def _restore_options(data_dir: Path) -> ZooKeeperRestoreOptions:
    """Without sessions: no ephemeral node may disappear during the comparison."""
    target = ServerTarget(data_dir=data_dir, log_dir=data_dir)
    return ZooKeeperRestoreOptions(targets=(target,), sessions=Sessions.DROP, alone=True, jute_maxbuffer=MAXBUFFER)


def _run_drill(
    run: Run,
    state: SourceRef,
    view: ArchiveView,
    prepared: PreparedRestore,
    chosen: VerifiedPath,
    data_dir: Path,
    before_s: float,
) -> tuple[DrillOutcome, ReceiptDocument]:
    if prepared.planned.obstacles:
        raise prepared.planned.obstacles[0]
    options = {o.name: o.kind.show(value) for o in _STORED_OPTIONS if (value := run.settings[o]) is not None}
    wanted = ZooKeeperRestoreStart(
        journal_name(run.clock(), run.token), int(view.name), options, drill=True, before_s=before_s
    )
    stored = begin(state, prepared, wanted, run.clock, run.token)
    try:
        boot = boot_of(version_of(view), run.cache, run.say)
        done = drill(prepared, data_dir, boot, wanted.journal, run.clock, run.token)
    except (ServerFailed, ClusterError, EngineUnavailable) as error:
        _abort(run, stored, error)
        raise
    except LogkeepError as error:
        note_failed(run, stored, error)
        raise
    body = stored.body(PlanBody)
    verdict = RestoreVerdict.FAILED if done.findings else verdict_of(body)
    findings = (*done.findings, *passed_over(chosen))
    return done, stored.ended(verdict, findings, facts_of(body, done.receipt))


def _abort(run: Run, stored: StoredRestore, error: LogkeepError) -> None:
    """The drill could not be run on this machine, which says nothing about the backup: store no receipt."""
    try:
        stored.abort(f"the drill could not be run: {error}")
    except LogkeepError as problem:
        run.console.warn(f"the abort of drill {stored.id} cannot be stored: {problem}")


def _report(
    source: str, view: ArchiveView, prepared: PreparedRestore, done: DrillOutcome, receipt: ReceiptDocument
) -> DrillReport:
    planned, path = prepared.planned, prepared.path
    return drill_report(
        source,
        receipt,
        f"embedded ZooKeeper {nearest_release(version_of(view))}",
        planned.size_bytes,
        tree=DrilledTree(
            zxid=hex_zxid(planned.zxid),
            proof=", ".join([path.proof, *path.labels]),
            nodes=planned.nodes,
            nodes_compared=done.nodes,
            transactions=prepared.replayed.transactions,
            digests_compared=prepared.replayed.digests_compared,
        ),
    )
