"""Make one plan from the surveys of several hosts. Reads the backup, and none of the directories."""

from collections.abc import Sequence
from dataclasses import dataclass

from logkeep.errors import LogkeepError
from logkeep.model.findings import Finding
from logkeep.model.time import Clock, rfc3339
from logkeep.zookeeper.model.archived import BackupView
from logkeep.zookeeper.restore.ensemble.agreement import archived_zxids, epoch_for_all, known_members
from logkeep.zookeeper.restore.ensemble.documents import AgreedPlan, HostSurvey, MemberSurvey, PlannedMember
from logkeep.zookeeper.restore.ensemble.survey import check_surveys, still_running
from logkeep.zookeeper.restore.limits import content_of
from logkeep.zookeeper.restore.numbers import highest_used
from logkeep.zookeeper.restore.obstacles import RestoreSituation, findings_of, numbers_beside, refusals
from logkeep.zookeeper.restore.replayed_tree import check_replayed, name_of, sizes_of
from logkeep.zookeeper.restore.staged_files import DroppedSessions, drop_sessions
from logkeep.zookeeper.restore.target.running_server import RunningServers
from logkeep.zookeeper.restore.values import Sessions, ZooKeeperRestoreOptions
from logkeep.zookeeper.timeline.plan import RestorePath
from logkeep.zookeeper.timeline.replay import ReplayedTree


@dataclass(frozen=True)
class Agreement:
    """The plan, and what the operator must know before applying it."""

    plan: AgreedPlan
    path: RestorePath
    replayed: ReplayedTree
    dropped: DroppedSessions
    size_bytes: int
    findings: tuple[Finding, ...]
    unchecked: tuple[str, ...]
    obstacles: tuple[LogkeepError, ...]
    """Why it must not be applied, in the order of the checks."""


def agree(
    view: BackupView,
    path: RestorePath,
    replayed: ReplayedTree,
    options: ZooKeeperRestoreOptions,
    hosts: Sequence[HostSurvey],
    *,
    source: str,
    clock: Clock,
) -> Agreement:
    """Raises UsageError or TargetUnsafe for unusable surveys, RestoreFailed for a tree that is wrong or unproven."""
    now = clock()
    check_surveys(hosts, now)
    check_replayed(path, replayed, options)
    surveys = [member for host in hosts for member in host.members]
    dropped = drop_sessions(replayed.tree) if options.sessions is Sessions.DROP else DroppedSessions()
    content = content_of(replayed.tree, int(now.timestamp() * 1000))
    epoch = epoch_for_all(view, options, surveys)
    used = highest_used(path.until, [each.highest_zxid for each in surveys], archived_zxids(view))
    situation = RestoreSituation(
        options=options,
        path=path,
        content=content,
        mismatch=replayed.first_mismatch,
        missing_acls=replayed.missing_acls,
        targets=(),
        seen=RunningServers(),
        epoch=epoch,
        highest_used=used,
        members=known_members(view.members),
        separate_logs="",
        surveyed=len(surveys),
    )
    plan = AgreedPlan(
        made=rfc3339(now),
        source=source,
        backup=view.name,
        zxid=path.until,
        named_zxid=name_of(path.until, options.form, used, epoch),
        epoch=epoch,
        sessions=options.sessions,
        form=options.form,
        believe=options.believe,
        accept_mismatch=options.accept_mismatch,
        nodes=content.nodes,
        digest=f"{replayed.tree.digest:x}",
        members=tuple(_member(host.machine, member) for host in hosts for member in host.members),
    )
    members = [(f"{member.member} on {host.machine}", member) for host in hosts for member in host.members]
    return Agreement(
        plan=plan,
        path=path,
        replayed=replayed,
        dropped=dropped,
        size_bytes=sum(sizes_of(path, content, options.form)),
        findings=(*findings_of(situation), *(note for at, m in members for note in numbers_beside(at, m.raised_by))),
        unchecked=tuple(f"{at}: {what}" for at, m in members for what in m.unchecked),
        obstacles=(*still_running(hosts), *refusals(situation)),
    )


def _member(machine: str, survey: MemberSurvey) -> PlannedMember:
    return PlannedMember(
        member=survey.member,
        machine=machine,
        data_dir=survey.data_dir,
        log_dir=survey.log_dir,
        fingerprint=survey.fingerprint,
    )
