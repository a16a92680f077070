"""One epoch for all members, above every one that was ever in use; and whether a host finds what a plan expects. Pure.

A host on which more is found than its survey told does not carry the plan out: somebody started a server in between.
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
from logkeep.zookeeper.restore.target_dirs import ServerDirectories
from logkeep.zookeeper.restore.values import TargetContents, ZooKeeperRestoreOptions, ZooKeeperRestorePlan
from logkeep.zookeeper.server.four_letter import ServerState

_ANEW = "stop all members, survey every host again and make a new plan"


def needed_epoch(
    view: BackupView,
    wish: ZooKeeperRestoreOptions,
    looked_at: Sequence[TargetContents | MemberSurvey],
    live: Sequence[ServerState],
) -> int | None:
    """Above all that is known of; None for a server that stands alone and always did.

    Raises UsageError for an epoch that was named for such a server: it has none, and nothing would come of it.
    """
    several = wish.ensemble or len(looked_at) > 1 or any(each.epochs for each in looked_at)
    if wish.alone or not (several or _was_a_member(view.members) or _may_be_a_member(view.members, looked_at)):
        if wish.min_epoch:
            raise UsageError(
                "--min-epoch is for members of an ensemble, and this server stands alone by all that is known of it: "
                "no epoch would be written",
                subject=str(wish.min_epoch),
                remedy="leave it out; or say with --ensemble that the server is a member",
            )
        return None
    return epoch_for_all(view, wish, looked_at, live)


def epoch_for_all(
    view: BackupView,
    wish: ZooKeeperRestoreOptions,
    looked_at: Sequence[TargetContents | MemberSurvey],
    live: Sequence[ServerState] = (),
) -> int:
    """For members of an ensemble."""
    epochs = [epoch for each in looked_at for epoch in each.epochs]
    epochs += [e for member in view.members for e in (member.current_epoch, member.accepted_epoch) if e is not None]
    zxids = archived_zxids(view) + [each.highest_zxid for each in looked_at] + [state.zxid for state in live]
    left = [each for each in looked_at if isinstance(each, TargetContents)]  # a survey has both in one
    epochs += [epoch for each in left for epoch in each.beside_epochs]
    zxids += [each.beside_zxid for each in left]
    return epoch_above(epochs, zxids, wish.min_epoch)


def archived_zxids(view: BackupView) -> list[int]:
    """The last ones that each file of the backup holds, or may hold in part."""
    return [log.last for log in view.logs] + [snapshot.fuzzy_end or snapshot.zxid for snapshot in view.snapshots]


def known_members(members: Sequence[Member]) -> int:
    """How many servers the ensemble has at least, by the backup."""
    return max([len(members), *(member.voters or 0 for member in members)])


def _was_a_member(members: Sequence[Member]) -> bool:
    """By the backup alone: the directory that it goes to may be new, and tell nothing."""
    others = [member for member in members if member.role != "standalone"]
    return (len(members) > 1 and bool(others)) or any(_in_an_ensemble(member) for member in others)


def _in_an_ensemble(member: Member) -> bool:
    """A server that said it stands alone is not asked: epoch files may be left of other days."""
    epochs = (member.current_epoch, member.accepted_epoch)
    return bool(member.role) or (member.voters or 1) > 1 or epochs != (None, None)


def _may_be_a_member(members: Sequence[Member], looked_at: Sequence[TargetContents | MemberSurvey]) -> bool:
    """Nobody could say of which kind the server was, and a number is all that its new directory holds.

    Where a kind is known, or data without epochs, the number says nothing: many give one to every server.
    """
    unknown = not any(member.role or member.voters for member in members)
    return unknown and any(isinstance(each, TargetContents) and each.empty and each.myid for each in looked_at)


def check_expected(
    agreed: AgreedPlan, targets: Iterable[tuple[ServerDirectories, TargetContents]], now: datetime
) -> None:
    """Whether these are directories that the plan was made for, as they were then. Raises UsageError, TargetUnsafe."""
    check_age("the plan", agreed.made, now, _ANEW)
    for place, held in targets:
        where = (str(place.data_dir), str(place.log_dir))
        mine = [each for each in agreed.members if (each.data_dir, each.log_dir) == where]
        if not mine:
            told = ", ".join(sorted({each.data_dir for each in agreed.members}))
            remedy = f"it is for {told}, with the --log-dir that was surveyed; to restore others, survey them too"
            raise UsageError("the plan was not made for this directory", subject=where[0], remedy=remedy)
        if any(each.fingerprint == held.fingerprint for each in mine):
            continue
        if set(held.epochs) == {agreed.epoch}:
            what = f"it has epoch {agreed.epoch} already: this plan was carried out here before"
            remedy = "go on with the next host; --rollback takes it back"
            raise TargetUnsafe(what, subject=where[0], remedy=remedy)
        what = "its files are not those that were surveyed: a server was started since, or it is another host"
        raise TargetUnsafe(what, subject=where[0], remedy=_ANEW)


def untouched(agreed: AgreedPlan, targets: Iterable[TargetContents]) -> list[TargetContents]:
    """A plan that was carried out and taken back may be carried out again: what it wrote itself was never given out.

    Servers that have run on it would have a later epoch.
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
    """Raises UsageError for another restore than was agreed, TargetUnsafe when the epoch is too low by now."""
    differing = [name for name in ("backup", "zxid", "sessions", "form") if _differ(name, planned, agreed)]
    if differing:
        told = ", ".join(f"{name} {getattr(agreed, name)}" for name in differing)
        raise UsageError(f"the plan says {told}", subject=hex_zxid(planned.zxid), remedy="apply it as it was made")
    if (planned.nodes, f"{digest:x}") != (agreed.nodes, agreed.digest):
        raise UsageError(
            "the tree that this repository gives is not the one that the plan was made of",
            subject=f"backup {planned.backup}",
            remedy="name the same repository and source on every host, and make the plan there",
        )
    if least_epoch > agreed.epoch:
        raise TargetUnsafe(
            f"epoch {least_epoch - 1} is in use here, and the plan was made for epochs below {agreed.epoch}",
            remedy=f"a member went on since it was surveyed: {_ANEW}",
        )


def _differ(name: str, planned: ZooKeeperRestorePlan, agreed: AgreedPlan) -> bool:
    return bool(getattr(planned, name) != getattr(agreed, name))
