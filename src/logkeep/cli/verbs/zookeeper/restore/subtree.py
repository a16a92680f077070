"""`logkeep zookeeper restore-subtree`: restore a subtree of a backup into a running ensemble."""

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import plural
from logkeep.cli.verbs.next_steps import after_restore
from logkeep.cli.verbs.zookeeper.restore.declarations import RESTORE_SUBTREE
from logkeep.cli.verbs.zookeeper.restore.resume_hints import Begun, rerun_hint
from logkeep.cli.verbs.zookeeper.restore.subtree_report import (
    SubtreeReport,
    ended_report,
    plan_text,
    planned_report,
    subtree_text,
)
from logkeep.cli.verbs.zookeeper.restore.subtree_session import (
    TIMEOUT_S,
    by_journal,
    name_journal,
    named_hosts,
    new_journal_path,
    opened_session,
    store_done,
    store_stopped,
)
from logkeep.cli.verbs.zookeeper.restore.verb import asked_moment, passed_over
from logkeep.cli.wiring import chosen_source, restores_place, stored_options
from logkeep.config.options import (
    AS_PATH,
    AUTH_FILE,
    BELIEVE,
    DELETE_EXTRA,
    JUTE_MAXBUFFER,
    RESUME_SUBTREE,
    UNDO_SUBTREE,
    YES,
    ZK_MOMENT,
    Options,
)
from logkeep.errors import ClusterError, LogkeepError, UsageError
from logkeep.formats.zookeeper import shown
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.ids import BackupId
from logkeep.reports.backups import read_source
from logkeep.repository.backups.holds import reading
from logkeep.repository.chain.owner import this_process
from logkeep.repository.restores.stored import StoredRestore
from logkeep.zookeeper.model.paths import parsed_path
from logkeep.zookeeper.repo.view import view_of
from logkeep.zookeeper.server.client import ZooKeeperSession, server_state
from logkeep.zookeeper.subtree.journal import Heading
from logkeep.zookeeper.subtree.prepare import SubtreeOptions, prepare
from logkeep.zookeeper.subtree.receipts import (
    SubtreeStart,
    begin_subtree,
    stored_as,
)
from logkeep.zookeeper.subtree.run import begin
from logkeep.zookeeper.timeline.verified_path import choose

_STORED_OPTIONS: Options = (*ZK_MOMENT, AS_PATH, DELETE_EXTRA, BELIEVE)


@verb(
    RESTORE_SUBTREE,
    next_step=after_restore,
    report=SubtreeReport,
    text=subtree_text,
    exit_code=lambda report: report.exit_code,
)
def restore_subtree(run: Run, backup: str | None, path: str | None) -> SubtreeReport:
    if run[RESUME_SUBTREE] is not None or run[UNDO_SUBTREE] is not None:
        from logkeep.cli.verbs.zookeeper.restore.subtree_finish import end_by_journal  # noqa: PLC0415 - only this way needs it

        return end_by_journal(run, backup)
    with rerun_hint() as begun:
        return _restore(run, backup, path, begun)


def _restore(run: Run, backup: str | None, path: str | None, begun: Begun) -> SubtreeReport:
    if backup is None or path is None:
        raise UsageError("name a backup and a path", remedy="logkeep zookeeper restore-subtree latest /a/b --zk-host …")
    top, target, hosts = parsed_path(path), parsed_path(run[AS_PATH] or path), named_hosts(run)
    place, moment = chosen_source(run), asked_moment(run)
    entry = read_source(place, run.clock()).completed(backup)
    began_s = run.world.monotonic()
    with reading(place, BackupId(entry.id), this_process(run.token()), "restore", run.token) as held:
        chosen = choose(view_of(place, held), moment, believe=run[BELIEVE])
    with opened_session(run, hosts) as live:
        prepared = prepare(chosen.replayed.tree, live, _subtree_options(run, top, target, hosts))
        before_s = run.world.monotonic() - began_s
        planned = planned_report(place.source, entry.id, hosts, shown(top), shown(target), chosen.path, prepared)
        planned = msgspec.structs.replace(planned, findings=passed_over(chosen))
        if run.dry_run or not prepared.batches:
            return msgspec.structs.replace(planned, dry_run=run.dry_run)
        _confirm_plan(run, planned)
        options = stored_options(run, _STORED_OPTIONS)
        wanted = SubtreeStart(
            entry.id, chosen.path, prepared, top, target, hosts, new_journal_path(run), options, before_s
        )
        stored = begin_subtree(restores_place(run, place, create=True), wanted, run.clock, run.token)
        with by_journal(wanted.journal):
            begun.yes = True
            return _carry_out(run, live, planned, wanted, stored)


def _carry_out(
    run: Run, live: ZooKeeperSession, planned: SubtreeReport, wanted: SubtreeStart, stored: StoredRestore
) -> SubtreeReport:
    what = f"backup {planned.backup} of {planned.source} at {hex_zxid(wanted.way.until)}"
    heading = Heading(hosts=planned.hosts, top=planned.target, what=what, stored=stored_as(stored))
    name_journal(run, wanted.journal)
    try:
        with by_journal(wanted.journal):
            ended = begin(live, wanted.journal, heading, wanted.prepared.batches)
    except LogkeepError as error:
        store_stopped(run, stored, error)
        raise
    store_done(run, stored, ended)
    return ended_report(msgspec.structs.replace(planned, restore=int(stored.id)), ended)


def _subtree_options(run: Run, top: bytes, target: bytes, hosts: str) -> SubtreeOptions:
    return SubtreeOptions(
        path=top,
        target=target,
        delete_extra=run[DELETE_EXTRA],
        proven=run[AUTH_FILE] is not None,
        jute_maxbuffer=run[JUTE_MAXBUFFER],
        version=_version(hosts),
    )


def _version(hosts: str) -> str:
    """Empty where the first server does not answer: another may, and each server's own version decides."""
    try:
        return server_state(hosts.partition(",")[0], TIMEOUT_S).version or ""
    except ClusterError:
        return ""


def _confirm_plan(run: Run, planned: SubtreeReport) -> None:
    if run.console.interactive and not run[YES]:
        run.show(plan_text, planned)
    changes = plural(len(planned.changes), "change")
    run.confirm(f"make {changes} in {planned.target} of the ensemble at {planned.hosts}?")
