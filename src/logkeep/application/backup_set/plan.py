"""Which members a set has, in which order they are captured and restored, and what their ends mean together. Pure.

Applications are captured first. What an application has sent to other systems before its checkpoint is then inside the
cuts of these systems, because their backups begin later: rule V13 of the certificate. Restores end with applications:
they continue as soon as they are started, so the systems that they use are restored before.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from logkeep.errors import IllegalTransition, Locked, UnknownSource, UsageError
from logkeep.kinds import APPLICATION, KAFKA, ZOOKEEPER, kind_named
from logkeep.model.ids import BackupId, next_id
from logkeep.repository.backups.states import StateName

_FIRST_BACKUP = {
    KAFKA.name: "logkeep kafka backup --source NAME",
    ZOOKEEPER.name: "logkeep zookeeper backup --source NAME",
    APPLICATION.name: "logkeep app backup NAME",
}
FAILED, GAPS, WARNINGS = 20, 21, 2
_WORST_FIRST = (FAILED, 10, GAPS, WARNINGS)


@dataclass(frozen=True)
class KnownMember:
    """A member as the repository knows it before the set is taken."""

    source: str
    kind: str | None
    """None: the repository has no such source."""
    last_id: int = 0
    """The largest id that was decided or requested; of an application, or that of its newest checkpoint."""
    busy: bool = False
    """Another run holds its lease, or a backup of it is ongoing."""


def check_names(names: Sequence[str]) -> None:
    """Raises UsageError."""
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise UsageError(f"--members names {double} twice", remedy="name each source once")
    if len(names) < 2:
        raise UsageError("a set needs two members or more", remedy="--members shop,kafka-prod,zk-prod")


def check_members(members: Iterable[KnownMember]) -> None:
    """Raises UnknownSource, UsageError, Locked: before anything is taken."""
    for member in members:
        if member.kind is None:
            verbs = ", ".join(f"`{verb}`" for verb in _FIRST_BACKUP.values())
            raise UnknownSource(
                "the repository has no such source",
                subject=member.source,
                remedy=f"take its first backup alone: {verbs}",
            )
        if member.kind not in _FIRST_BACKUP:
            raise UsageError(f"a source of kind {member.kind} cannot be a member", subject=member.source)
        if member.busy:
            raise Locked(
                "another run works on it", subject=member.source, remedy="wait until it has ended, then take the set"
            )


def chosen_id(wanted: BackupId | None, members: Iterable[KnownMember], now: datetime) -> BackupId:
    """An id that no member has used. Raises IllegalTransition."""
    last = max(members, key=lambda member: member.last_id)
    if wanted is not None and wanted <= last.last_id:
        what = f"backup id {wanted} is not larger than the last one, {last.last_id}"
        raise IllegalTransition(what, subject=last.source)
    return wanted or next_id(now, last.last_id)


def capture_order(members: Sequence[KnownMember]) -> list[KnownMember]:
    """Applications first, then the others, each in the order in which the user named them."""
    return sorted(members, key=lambda member: not kind_named(member.kind or "").leads_backup_set)


def end_code(state: str, codes: Iterable[int]) -> int:
    """The exit code of a set, from its state and from what its members would have ended with."""
    if state != StateName.COMPLETED:
        return FAILED
    found = set(codes)
    return next((code for code in _WORST_FIRST if code in found), max(found, default=0))
