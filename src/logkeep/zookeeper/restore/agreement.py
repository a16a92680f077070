"""One plan for members on several hosts: each is surveyed where it is, one plan is made of all, each host applies it.

Both documents are JSON. A survey says how far a member got; a plan says which epoch lies above all of them. A host on
which more is found than its survey told does not apply the plan: somebody started a server in between.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from logkeep.errors import Damaged, TargetUnsafe, UsageError
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.zookeeper.kept import BackupView, Member
from logkeep.zookeeper.restore.holding import held_by
from logkeep.zookeeper.restore.numbers import epoch_above
from logkeep.zookeeper.restore.places import check_swappable, place_of
from logkeep.zookeeper.restore.running import Ask, ask_server, look_for_servers
from logkeep.zookeeper.restore.values import Form, Held, Planned, RestoreWish, Sessions, Target
from logkeep.zookeeper.words import ServerState

Zxid = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Epoch = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class MemberSurvey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="restore-survey-1"):
    """How far one member got, by its directories and by itself if it runs."""

    data_dir: str
    host: str
    highest_zxid: Zxid
    epochs: tuple[Epoch, ...]


class AgreedPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="restore-plan-1"):
    """What every member gets."""

    backup: str
    zxid: Zxid
    epoch: Epoch
    sessions: Sessions
    form: Form


def survey_of(target: Target, *, ask: Ask = ask_server) -> MemberSurvey:
    """Of a member that is stopped, or still runs. Raises UsageError or TargetUnsafe for a wrong directory."""
    place = place_of(target)
    check_swappable(place)
    held, live = held_by(place), look_for_servers([place], ask).live
    highest = max([held.highest_zxid, *(state.zxid for state in live)])
    return MemberSurvey(data_dir=str(place.data_dir), host=target.host, highest_zxid=highest, epochs=held.epochs)


def needed_epoch(
    view: BackupView, wish: RestoreWish, looked_at: Sequence[Held | MemberSurvey], live: Sequence[ServerState]
) -> int | None:
    """Above all that is known of; None for a server that stands alone and always did."""
    several = wish.ensemble or len(looked_at) > 1 or any(each.epochs for each in looked_at)
    if wish.alone or not (several or _was_a_member(view.members) or _may_be_a_member(view.members, looked_at)):
        return None
    epochs = [epoch for each in looked_at for epoch in each.epochs]
    epochs += [e for member in view.members for e in (member.current_epoch, member.accepted_epoch) if e is not None]
    zxids = archived_zxids(view) + [each.highest_zxid for each in looked_at] + [state.zxid for state in live]
    return epoch_above(epochs, zxids, wish.min_epoch)


def archived_zxids(view: BackupView) -> list[int]:
    """The last ones that each file of the backup holds, or may hold in part."""
    return [log.last for log in view.logs] + [snapshot.fuzzy_end or snapshot.zxid for snapshot in view.snapshots]


def _was_a_member(members: Sequence[Member]) -> bool:
    """By the backup alone: the directory that it goes to may be new, and tell nothing."""
    others = [member for member in members if member.role != "standalone"]
    return (len(members) > 1 and bool(others)) or any(_in_an_ensemble(member) for member in others)


def _in_an_ensemble(member: Member) -> bool:
    """A server that said it stands alone is not asked: epoch files may be left of other days."""
    epochs = (member.current_epoch, member.accepted_epoch)
    return bool(member.role) or (member.voters or 1) > 1 or epochs != (None, None)


def _may_be_a_member(members: Sequence[Member], looked_at: Sequence[Held | MemberSurvey]) -> bool:
    """Nobody could say of which kind the server was, and a number is all that its new directory holds.

    Where a kind is known, or data without epochs, the number says nothing: many give one to every server.
    """
    unknown = not any(member.role or member.voters for member in members)
    return unknown and any(isinstance(each, Held) and each.empty and each.myid for each in looked_at)


def agreed_plan(planned: Planned) -> AgreedPlan:
    if planned.epoch is None:
        raise UsageError("a server that stands alone needs no plan for others", remedy="restore it where it is")
    return AgreedPlan(
        backup=planned.backup,
        zxid=planned.zxid,
        epoch=planned.epoch,
        sessions=planned.sessions,
        form=planned.form,
    )


def check_agrees(planned: Planned, agreed: AgreedPlan, least_epoch: int) -> None:
    """Raises UsageError for another restore than was agreed, TargetUnsafe when the epoch is too low by now."""
    differing = [
        name for name in ("backup", "zxid", "sessions", "form") if getattr(planned, name) != getattr(agreed, name)
    ]
    if differing:
        told = ", ".join(f"{name} {getattr(agreed, name)}" for name in differing)
        raise UsageError(f"the plan says {told}", subject=hex_zxid(planned.zxid), remedy="apply it as it was made")
    if least_epoch > agreed.epoch:
        raise TargetUnsafe(
            f"epoch {least_epoch - 1} is in use here, and the plan was made for epochs below {agreed.epoch}",
            remedy="a member went on since it was surveyed: stop all, survey them again and make a new plan",
        )


def encoded(document: MemberSurvey | AgreedPlan) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def decoded(content: bytes, name: str) -> MemberSurvey | AgreedPlan:
    try:
        return msgspec.json.decode(content, type=MemberSurvey | AgreedPlan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Damaged("this is neither a survey of a member nor a plan for all", subject=name) from error
