"""One plan for members on several hosts, made of their surveys. Reads the backup, and none of the directories."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from logkeep.errors import LogkeepError
from logkeep.model.findings import Finding
from logkeep.model.time import Clock, rfc3339
from logkeep.zookeeper.model.archived import BackupView
from logkeep.zookeeper.restore.ensemble.agreement import archived_zxids, epoch_for_all, known_members
from logkeep.zookeeper.restore.ensemble.documents import AgreedPlan, HostSurvey, MemberSurvey, PlannedMember
from logkeep.zookeeper.restore.ensemble.survey import check_surveys, still_running
from logkeep.zookeeper.restore.limits import content_of
from logkeep.zookeeper.restore.numbers import highest_used
from logkeep.zookeeper.restore.obstacles import RestoreSituation, in_the_way, numbers_beside, worth_knowing
from logkeep.zookeeper.restore.prepare import check_replayed, name_of, sizes_of
from logkeep.zookeeper.restore.running_server import RunningServers
from logkeep.zookeeper.restore.sessions import Dropped, drop_sessions
from logkeep.zookeeper.restore.values import Sessions, ZooKeeperRestoreOptions
from logkeep.zookeeper.timeline.plan import RestorePath
from logkeep.zookeeper.timeline.replay import ReplayedTree

_NOBODY: Final = RunningServers()


@dataclass(frozen=True)
class Agreement:
    """The plan, and all that is to be known before it is carried out."""

    plan: AgreedPlan
    path: RestorePath
    replayed: ReplayedTree
    dropped: Dropped
    size_bytes: int
    findings: tuple[Finding, ...]
    unchecked: tuple[str, ...]
    obstacles: tuple[LogkeepError, ...]
    """Why it must not be carried out, the first reason first."""


def agree(
    view: BackupView,
    path: RestorePath,
    replayed: ReplayedTree,
    wish: ZooKeeperRestoreOptions,
    hosts: Sequence[HostSurvey],
    *,
    source: str,
    clock: Clock,
) -> Agreement:
    """Raises UsageError or TargetUnsafe for surveys that no plan can be made of, RestoreFailed for a doubtful tree."""
    now = clock()
    check_surveys(hosts, now)
    check_replayed(path, replayed, wish)
    surveys = [member for host in hosts for member in host.members]
    dropped = drop_sessions(replayed.tree) if wish.sessions is Sessions.DROP else Dropped()
    content = content_of(replayed.tree, int(now.timestamp() * 1000))
    epoch = epoch_for_all(view, wish, surveys)
    used = highest_used(path.until, [each.highest_zxid for each in surveys], archived_zxids(view))
    situation = RestoreSituation(
        wish=wish,
        path=path,
        content=content,
        mismatch=replayed.first_mismatch,
        missing_acls=replayed.missing_acls,
        targets=(),
        seen=_NOBODY,
        epoch=epoch,
        highest_used=used,
        members=known_members(view.members),
        separate_logs="",
        looked_at=len(surveys),
    )
    plan = AgreedPlan(
        made=rfc3339(now),
        source=source,
        backup=view.name,
        zxid=path.until,
        named_zxid=name_of(path.until, wish.form, used, epoch),
        epoch=epoch,
        sessions=wish.sessions,
        form=wish.form,
        believe=wish.believe,
        accept_mismatch=wish.accept_mismatch,
        nodes=content.nodes,
        digest=f"{replayed.tree.digest:x}",
        members=tuple(_member(host.machine, member) for host in hosts for member in host.members),
    )
    unchecked = (
        f"{m.member} on {host.machine}: {what}" for host in hosts for m in host.members for what in m.unchecked
    )
    beside = (
        note
        for host in hosts
        for m in host.members
        for note in numbers_beside(f"{m.member} on {host.machine}", m.raised_by)
    )
    return Agreement(
        plan=plan,
        path=path,
        replayed=replayed,
        dropped=dropped,
        size_bytes=sum(sizes_of(path, content, wish.form)),
        findings=(*worth_knowing(situation), *beside),
        unchecked=tuple(unchecked),
        obstacles=(*still_running(hosts), *in_the_way(situation)),
    )


def _member(machine: str, survey: MemberSurvey) -> PlannedMember:
    return PlannedMember(
        member=survey.member,
        machine=machine,
        data_dir=survey.data_dir,
        log_dir=survey.log_dir,
        fingerprint=survey.fingerprint,
    )
