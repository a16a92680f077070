"""Findings about damage in a member's logs: a torn end, records that are held elsewhere, or a loss. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from logkeep.formats.zookeeper.names import epoch_of, follows, hex_zxid
from logkeep.model.findings import Finding, Severity
from logkeep.zookeeper.backup.log_task import FoundDamage
from logkeep.zookeeper.backup.member import MemberRun
from logkeep.zookeeper.backup.other_members import ASK_ANOTHER, OtherMembers, holders_text
from logkeep.zookeeper.backup.round_rules import RoundHole, holes
from logkeep.zookeeper.backup.server_files import FoundFile
from logkeep.zookeeper.model.sink import PlacedLog


def damage_findings(member: MemberRun, kept: Sequence[PlacedLog], others: OtherMembers) -> Iterable[Finding]:
    """`kept`: of this member; `others`: what is archived of the other members."""
    logs = {log.path.name: log for log in member.files.logs}
    for name, damages in member.damage.items():
        for damage in damages:
            following = _next_log(member.files.logs, logs.get(name))
            yield from _damage(member.path_of(name), damage, following, _Held(name, kept, others))


def from_damage(member: MemberRun, hole: RoundHole) -> bool:
    """Whether a finding about a damaged file already reports it."""
    following = {log.path.name: _next_log(member.files.logs, log) for log in member.files.logs}
    return any(
        _before(name, d) < hole.first and hole.last < (d.resumes_zxid or following.get(name) or 0)
        for name, damages in member.damage.items()
        for d in damages
    )


def _next_log(logs: Sequence[FoundFile], log: FoundFile | None) -> int | None:
    return next((other.zxid for other in logs if log is not None and other.zxid > log.zxid), None)


@dataclass(frozen=True)
class _Held:
    """For the log of this name: what is archived of its member, and of the others."""

    name: str
    kept: Sequence[PlacedLog]
    others: OtherMembers


def _damage(where: str, damage: FoundDamage, following: int | None, held: _Held) -> Iterable[Finding]:
    name, at = held.name, f"byte {damage.position}, after {hex_zxid(damage.after_zxid)}"
    continues = damage.resumes_zxid if damage.resumes_zxid is not None else following
    if damage.kind == "bad-header" and damage.resumes_zxid == _zxid_of(name):
        yield Finding(
            code="header-rewritten",
            severity=Severity.WARNING,
            where=where,
            what="its header was damaged; it holds no information, and the records are archived with a good one",
        )
    elif continues is None:
        yield Finding(
            code="active-tail",
            severity=Severity.NOTE,
            where=where,
            what=f"the last record was being written ({at}); everything before it is archived",
        )
    elif missing := _missing(_before(name, damage), continues, held.kept):
        # Across epochs it is unknown which records were damaged, so no member can be said to have all of them.
        one_epoch = epoch_of(_before(name, damage)) == epoch_of(continues)
        for hole in missing:
            unread = (
                f"{damage.kind} at {at}: transactions {hex_zxid(hole.first)} to {hex_zxid(hole.last)} cannot be read"
            )
            holders = held.others.holders(hole) if one_epoch else ()
            yield Finding(
                code="held-elsewhere" if holders else "lost-transactions",
                severity=Severity.WARNING if holders else Severity.DAMAGE,
                where=where,
                what=f"{unread}; {holders_text(holders)}, nothing is lost" if holders else unread,
                remedy="" if holders else ASK_ANOTHER,
            )
    elif damage.resumes_zxid is None or follows(_before(name, damage), damage.resumes_zxid):
        yield Finding(
            code="torn-tail",
            severity=Severity.NOTE,
            where=where,
            what=f"a torn end ({at}); the next record is in another file, nothing is lost",
        )
    else:
        yield Finding(
            code="held-elsewhere",
            severity=Severity.WARNING,
            where=where,
            what=f"{damage.kind} at {at}: what cannot be read here is undamaged elsewhere in the logs, nothing is lost",
        )


def _missing(after: int, until: int, kept: Sequence[PlacedLog]) -> list[RoundHole]:
    """What is between two records and in no archived piece."""
    runs = [(p.kept.first, p.kept.last) for p in kept if p.kept.first < until and p.kept.last > after]
    return holes([(after, after), *runs, (until, until)]) if after < until else []


def _before(name: str, damage: FoundDamage) -> int:
    """The last record before it. A log is named after its first one."""
    return damage.after_zxid or _zxid_of(name) - 1


def _zxid_of(name: str) -> int:
    return int(name.split(".")[1], 16)
