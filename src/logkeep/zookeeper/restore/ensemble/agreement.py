"""Choose one epoch for all members, and check that a host is in the state that the plan was made for. Pure.

The epoch is above every one that was ever in use. A host with other files than its survey reported does not apply the
plan: a server was started in between.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from logkeep.errors import TargetUnsafe, UsageError
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.zookeeper.model.archived import BackupView, Member
from logkeep.zookeeper.restore.ensemble.documents import AgreedPlan, MemberSurvey
from logkeep.zookeeper.restore.ensemble.survey import check_age
from logkeep.zookeeper.restore.numbers import epoch_above
from logkeep.zookeeper.restore.target.directories import ServerDirectories
from logkeep.zookeeper.restore.values import TargetContents, ZooKeeperRestoreOptions, ZooKeeperRestorePlan
from logkeep.zookeeper.server.four_letter import ServerState

_ANEW = "stop all members, survey every host again and make a new plan"


def needed_epoch(
    view: BackupView,
    options: ZooKeeperRestoreOptions,
    surveyed: Sequence[TargetContents | MemberSurvey],
    live: Sequence[ServerState],
) -> int | None:
    """An epoch above all known ones; None for a server that always was standalone.

    Raises UsageError for --min-epoch with such a server: it has no epoch, so the option would have no effect.
    """
    several = options.ensemble or len(surveyed) > 1 or any(each.epochs for each in surveyed)
    if options.alone or not (several or _was_a_member(view.members) or _may_be_a_member(view.members, surveyed)):
        if options.min_epoch:
            raise UsageError(
                "--min-epoch is for members of an ensemble, and this server seems to be standalone: no epoch would be "
                "written",
                subject=str(options.min_epoch),
                remedy="leave it out; or declare the server a member with --ensemble",
            )
        return None
    return epoch_for_all(view, options, surveyed, live)


def epoch_for_all(
    view: BackupView,
    options: ZooKeeperRestoreOptions,
    surveyed: Sequence[TargetContents | MemberSurvey],
    live: Sequence[ServerState] = (),
) -> int:
    """An epoch above all known ones, for members of an ensemble."""
    epochs = [epoch for each in surveyed for epoch in each.epochs]
    epochs += [e for member in view.members for e in (member.current_epoch, member.accepted_epoch) if e is not None]
    zxids = archived_zxids(view) + [each.highest_zxid for each in surveyed] + [state.zxid for state in live]
    left = [each for each in surveyed if isinstance(each, TargetContents)]  # a survey includes files beside
    epochs += [epoch for each in left for epoch in each.beside_epochs]
    zxids += [each.beside_zxid for each in left]
    return epoch_above(epochs, zxids, options.min_epoch)


def archived_zxids(view: BackupView) -> list[int]:
    """The last zxid that each file of the backup holds, or may hold in part."""
    return [log.last for log in view.logs] + [snapshot.fuzzy_end or snapshot.zxid for snapshot in view.snapshots]


def known_members(members: Sequence[Member]) -> int:
    """The minimum number of servers in the ensemble, according to the backup."""
    return max([len(members), *(member.voters or 0 for member in members)])


def _was_a_member(members: Sequence[Member]) -> bool:
    """By the backup alone: the target directory may be new and empty."""
    others = [member for member in members if member.role != "standalone"]
    return (len(members) > 1 and bool(others)) or any(_in_an_ensemble(member) for member in others)


def _in_an_ensemble(member: Member) -> bool:
    """Not for a server that reported itself as standalone: its epoch files may be left from earlier."""
    epochs = (member.current_epoch, member.accepted_epoch)
    return bool(member.role) or (member.voters or 1) > 1 or epochs != (None, None)


def _may_be_a_member(members: Sequence[Member], surveyed: Sequence[TargetContents | MemberSurvey]) -> bool:
    """Whether the backup has no role of the server, and its new directory holds only `myid`.

    Where the role is known, or the directory holds data without epochs, `myid` says nothing: standalone servers often
    have one.
    """
    unknown = not any(member.role or member.voters for member in members)
    return unknown and any(isinstance(each, TargetContents) and each.empty and each.myid for each in surveyed)


def check_expected(
    agreed: AgreedPlan, targets: Iterable[tuple[ServerDirectories, TargetContents]], now: datetime
) -> None:
    """Raises UsageError if the plan was not made for these directories, TargetUnsafe if they have changed."""
    check_age("the plan", agreed.made, now, _ANEW)
    for place, held in targets:
        where = (str(place.data_dir), str(place.log_dir))
        mine = [each for each in agreed.members if (each.data_dir, each.log_dir) == where]
        if not mine:
            planned = ", ".join(sorted({each.data_dir for each in agreed.members}))
            remedy = f"it is for {planned}, with the --log-dir that was surveyed; to restore others, survey them too"
            raise UsageError("the plan was not made for this directory", subject=where[0], remedy=remedy)
        if any(each.fingerprint == held.fingerprint for each in mine):
            continue
        if set(held.epochs) == {agreed.epoch}:
            what = f"it has epoch {agreed.epoch} already: this plan was applied here before"
            remedy = "continue with the next host; --rollback undoes it"
            raise TargetUnsafe(what, subject=where[0], remedy=remedy)
        what = "its files are not the surveyed ones: a server was started since, or this is another host"
        raise TargetUnsafe(what, subject=where[0], remedy=_ANEW)


def without_own_writes(agreed: AgreedPlan, targets: Iterable[TargetContents]) -> list[TargetContents]:
    """The targets without the numbers that this plan wrote itself: after a rollback it may be applied again.

    Servers that have run on its files would have a later epoch.
    """
    written = agreed.epoch << 32
    return [
        replace(
            held,
            beside_epochs=tuple(epoch for epoch in held.beside_epochs if epoch != agreed.epoch),
            beside_zxid=0 if held.beside_zxid == written else held.beside_zxid,
        )
        for held in targets
    ]


def check_agrees(planned: ZooKeeperRestorePlan, digest: int, agreed: AgreedPlan, least_epoch: int) -> None:
    """Raises UsageError for another restore than the plan's, TargetUnsafe when its epoch is too low by now."""
    names = ("backup", "zxid", "sessions", "form")
    differing = [f"{name} {getattr(agreed, name)}" for name in names if getattr(planned, name) != getattr(agreed, name)]
    if differing:
        what = f"the plan says {', '.join(differing)}"
        raise UsageError(what, subject=hex_zxid(planned.zxid), remedy="apply it as it was made")
    if (planned.nodes, f"{digest:x}") != (agreed.nodes, agreed.digest):
        raise UsageError(
            "the tree in this repository is not the one that the plan was made from",
            subject=f"backup {planned.backup}",
            remedy="name the same repository and source on every host, also for the plan",
        )
    if least_epoch > agreed.epoch:
        raise TargetUnsafe(
            f"epoch {least_epoch - 1} is in use here, and the plan was made for epochs below {agreed.epoch}",
            remedy=f"a member has run since it was surveyed: {_ANEW}",
        )
