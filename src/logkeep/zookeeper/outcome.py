"""What a backup tells of what it met: findings, lost transactions, and the exit code that follows from them. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from logkeep.formats.zookeeper.names import epoch_of, follows, hex_zxid
from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import Proof
from logkeep.zookeeper.collect import FoundFile
from logkeep.zookeeper.copying_logs import FoundDamage
from logkeep.zookeeper.elsewhere import Elsewhere
from logkeep.zookeeper.kept import Ending, Origin
from logkeep.zookeeper.member_run import MemberRun
from logkeep.zookeeper.rounds import Hole, Standing, borders, holes, reached, settled
from logkeep.zookeeper.sink import LostRange, PlacedLog
from logkeep.zookeeper.words import ServerState

GOOD, PARTIAL, LOST = 0, 2, 21
_PARTIAL = {
    "server-unreachable", "other-server", "server-lags", "header-rewritten", "snapshot-fuzzy", "snapshot-unproven",
    "copied-again", "held-elsewhere", "log-overlap",
}  # fmt: skip
_CONTRADICTED = "they stand behind records that are other ones in an earlier log"
_ANOTHER_MEMBER = "another member, or an earlier backup, may have these transactions: back that up too"


@dataclass(frozen=True)
class Told:
    """Of one member."""

    findings: tuple[Finding, ...]
    lost: tuple[LostRange, ...]
    """Everything that no piece holds."""
    logs: tuple[PlacedLog, ...]
    """Those that are kept: none overlaps another."""


def told_of(member: MemberRun, others: Elsewhere) -> Told:
    """`others`: what the other members of the same backup hold."""
    logs, doubled = _apart(member)
    logs = _with_borders(member, logs)
    kept_to = member.continued.kept_to
    before = [(kept_to, kept_to)] if kept_to is not None else []
    open_holes = holes([*before, *((p.kept.first, p.kept.last) for p in logs)])
    torn, unkept = list(_torn(member)), _behind_other_records(logs, doubled)
    findings = [
        *_strays(member),
        *_bad_snapshots(member),
        *(_doubled(member, one) for one in doubled),
        *(_unkept(member, hole) for hole in unkept),
        *_damages(member, logs, others),
        *_logged_again(member),
        *(_hole(member, hole, others.holders(hole)) for hole in open_holes if not _from_damage(member, hole)),
        *_open_end(member),
        *_unasked(member),
    ]
    lost = [LostRange(member.place.name, h.first, h.last, _reason(member, h)) for h in open_holes]
    lost += [LostRange(member.place.name, h.first, h.last, _CONTRADICTED) for h in unkept]
    return Told(tuple(findings), (*lost, *torn), tuple(logs))


def kept_runs(member: MemberRun) -> list[tuple[int, int]]:
    """First and last of what is kept of its logs: without what contradicts itself."""
    return [(placed.kept.first, placed.kept.last) for placed in _apart(member)[0]]


def foreseen(member: MemberRun) -> list[Finding]:
    """What is known before anything is copied."""
    return [*_strays(member), *_unasked(member)]


def exit_code(findings: Iterable[Finding]) -> int:
    codes = {f.code for f in findings}
    if codes & {
        "lost-transactions",
        "hole",
        "no-snapshot",
        "behind-the-server",
        "no-log",
        "end-unreachable",
        "rests-on-damage",
    }:
        return LOST
    return PARTIAL if codes & _PARTIAL else GOOD


@dataclass(frozen=True)
class _Doubled:
    """Records of one epoch that are other ones in what is kept, or stand behind such."""

    file: str
    first: int
    last: int


def _apart(member: MemberRun) -> tuple[list[PlacedLog], list[_Doubled]]:
    """Pieces in order of zxid without those that overlap one before them; and what says otherwise than these."""
    kept: list[PlacedLog] = []
    doubled = [_Doubled(name, o.first, o.last) for name, others in member.others.items() for o in others]
    for one in sorted(member.logs, key=lambda p: (p.kept.first, -p.kept.last)):
        if not kept or one.kept.first > kept[-1].kept.last:
            kept.append(one)
        elif one.kept.last > kept[-1].kept.last or not member.holds(kept[-1].kept, one.kept):
            doubled.append(_Doubled(one.kept.name, one.kept.first, one.kept.last))
    return kept, doubled


def _with_borders(member: MemberRun, logs: Sequence[PlacedLog]) -> list[PlacedLog]:
    told = borders([p.kept for p in logs], member.side_by_side)
    found = [replace(placed, kept=kept) for placed, kept in zip(logs, told, strict=True)]
    before = member.continued.kept_to
    if found and before is not None and member.follows_archive(found[0].kept) and follows(before, found[0].kept.first):
        first = found[0].kept
        if epoch_of(before) != epoch_of(first.first):
            found[0] = replace(found[0], kept=replace(first, borders=((before, first.first),)))
    return found


def _strays(member: MemberRun) -> Iterable[Finding]:
    for path in member.seen.strays:
        yield Finding(
            code="stray-file",
            severity=Severity.WARNING,
            where=path,
            what="a server reads this as one of its own files, and no server wrote it; it is not copied",
            remedy="move it out of the directory: it can keep the server from starting",
        )


def _bad_snapshots(member: MemberRun) -> Iterable[Finding]:
    newest = member.seen.snapshots[-1].path.name if member.seen.snapshots else ""
    for name, why in member.unusable.items():
        unfinished = name == newest and bool(member.snapshots or member.known_snapshots)
        yield Finding(
            code="snapshot-unfinished" if unfinished else "snapshot-damaged",
            severity=Severity.NOTE if unfinished else Severity.WARNING,
            where=_where(member, name),
            what=f"{'being written, or never finished' if unfinished else 'damaged'}: {why}; it is not kept",
        )
    if not member.snapshots and not member.known_snapshots and not _from_the_beginning(member):
        yield Finding(
            code="no-snapshot",
            severity=Severity.DAMAGE,
            where=f"member {member.place.name}",
            what="no whole snapshot was found: nothing can be restored from this member alone",
            remedy="restart the server, which writes one, or back up another member",
        )


def _from_the_beginning(member: MemberRun) -> bool:
    """Before 3.5 a server that never had to write a snapshot has none: its logs begin with the first transaction."""
    return any(p.kept.first == 1 for p in member.logs)


def _damages(member: MemberRun, kept: Sequence[PlacedLog], others: Elsewhere) -> Iterable[Finding]:
    logs = {log.path.name: log for log in member.seen.logs}
    for name, damages in member.damage.items():
        for damage in damages:
            following = _next_log(member.seen.logs, logs.get(name))
            yield from _damage(_where(member, name), damage, following, _Held(name, kept, others))


def _logged_again(member: MemberRun) -> Iterable[Finding]:
    for name, found in member.again.items():
        for again in found:
            yield Finding(
                code="logged-again",
                severity=Severity.NOTE,
                where=_where(member, name),
                what=f"{hex_zxid(again.first)} to {hex_zxid(again.last)} were logged again, the same (byte "
                f"{again.position}); they are kept once",
            )


def _next_log(logs: Sequence[FoundFile], log: FoundFile | None) -> int | None:
    return next((other.zxid for other in logs if log is not None and other.zxid > log.zxid), None)


@dataclass(frozen=True)
class _Held:
    """Of the log of this name: what is kept of its member, and what others hold."""

    name: str
    kept: Sequence[PlacedLog]
    others: Elsewhere


def _damage(where: str, damage: FoundDamage, following: int | None, held: _Held) -> Iterable[Finding]:
    name, at = held.name, f"byte {damage.position}, behind {hex_zxid(damage.after_zxid)}"
    goes_on = damage.resumes_zxid if damage.resumes_zxid is not None else following
    if damage.kind == "bad-header" and damage.resumes_zxid == _zxid_of(name):
        yield Finding(
            code="header-rewritten",
            severity=Severity.WARNING,
            where=where,
            what="its header was damaged; it holds no information, and the records are kept behind a good one",
        )
    elif goes_on is None:
        yield Finding(
            code="active-tail",
            severity=Severity.NOTE,
            where=where,
            what=f"the last record was being written ({at}); everything before it is kept",
        )
    elif missing := _missing(_before(name, damage), goes_on, held.kept):
        # Across epochs nobody knows what stood in the damaged place, so nobody can be said to have all of it.
        one_epoch = epoch_of(_before(name, damage)) == epoch_of(goes_on)
        for hole in missing:
            unread = (
                f"{damage.kind} at {at}: transactions {hex_zxid(hole.first)} to {hex_zxid(hole.last)} cannot be read"
            )
            holders = held.others.holders(hole) if one_epoch else ()
            yield Finding(
                code="held-elsewhere" if holders else "lost-transactions",
                severity=Severity.WARNING if holders else Severity.DAMAGE,
                where=where,
                what=f"{unread}; {_who(holders)}, nothing is lost" if holders else unread,
                remedy="" if holders else _ANOTHER_MEMBER,
            )
    elif damage.resumes_zxid is None or follows(_before(name, damage), damage.resumes_zxid):
        yield Finding(
            code="torn-tail",
            severity=Severity.NOTE,
            where=where,
            what=f"a torn end ({at}); the next record elsewhere follows, nothing is lost",
        )
    else:
        yield Finding(
            code="held-elsewhere",
            severity=Severity.WARNING,
            where=where,
            what=f"{damage.kind} at {at}: what cannot be read here stands whole in another place of the logs, nothing "
            "is lost",
        )


def _missing(after: int, goes_on: int, kept: Sequence[PlacedLog]) -> list[Hole]:
    """What stands between two records and in no piece that is kept."""
    runs = [(p.kept.first, p.kept.last) for p in kept if p.kept.first < goes_on and p.kept.last > after]
    return holes([(after, after), *runs, (goes_on, goes_on)]) if after < goes_on else []


def _before(name: str, damage: FoundDamage) -> int:
    """The last record before it. A log is named after its first one."""
    return damage.after_zxid or _zxid_of(name) - 1


def _zxid_of(name: str) -> int:
    return int(name.split(".")[1], 16)


def _torn(member: MemberRun) -> Iterable[LostRange]:
    """What a server has processed and no file of it holds: beyond the last record that is kept."""
    standing = member.standing()
    cap = standing.cap
    if _over_http(member) or cap is None or settled(standing) or max(standing.last, standing.newest_snapshot) >= cap:
        return
    last = standing.newest_snapshot if member.lacks_logs else standing.last
    if epoch_of(last) == epoch_of(cap):
        yield LostRange(member.place.name, last + 1, cap, "processed by the server, in no log")


def _open_end(member: MemberRun) -> Iterable[Finding]:
    standing = member.standing()
    if _over_http(member) or settled(standing):
        return
    if member.lacks_logs:
        yield Finding(
            code="no-log",
            severity=Severity.DAMAGE,
            where=str(member.seen.log_dir),
            what=f"no log lies here, and the server has processed {hex_zxid(standing.cap or 0)}, behind its newest "
            f"snapshot ({hex_zxid(standing.newest_snapshot)}): its logs are elsewhere",
            remedy="name what its zoo.cfg has as dataLogDir: --zk-log-dir of zkbackup, --log-dir of logkeep",
        )
        return
    if standing.last < standing.fuzzy_end and standing.fuzzy_end > standing.newest_snapshot:
        yield Finding(
            code="fuzzy-end-open",
            severity=Severity.WARNING,
            where=f"member {member.place.name}",
            what=f"the newest snapshot needs the log up to {hex_zxid(standing.fuzzy_end)}, "
            f"which ends at {hex_zxid(standing.last)}",
            remedy="an older snapshot may do; a next backup will have the rest",
        )
    if not reached(standing):
        yield Finding(
            code="behind-the-server",
            severity=Severity.DAMAGE,
            where=f"member {member.place.name}",
            what=_behind(standing),
            remedy="check that the directories (--data-dir; --zk-data-dir of zkbackup) are those of the server that "
            "--zk-host names; " + _ANOTHER_MEMBER,
        )


def _behind(standing: Standing) -> str:
    """How many transactions lie between two epochs nobody knows: then the epochs are told too."""
    cap, end = standing.cap or 0, max(standing.last, standing.newest_snapshot)
    if epoch_of(cap) == epoch_of(end):
        return f"the server has processed {hex_zxid(cap)}, its logs end at {hex_zxid(standing.last)}"
    return (
        f"the server is in epoch {epoch_of(cap)} and has processed {hex_zxid(cap)}, "
        f"its files end in epoch {epoch_of(end)}, at {hex_zxid(end)}"
    )


def _over_http(member: MemberRun) -> bool:
    """Then there are no logs by nature: who fetched the snapshot has told what it is worth."""
    return member.place.origin is Origin.ADMIN


def _unasked(member: MemberRun) -> Iterable[Finding]:
    if member.state is not None:
        return
    tail = [p.kept for p in member.logs if p.kept.proof is Proof.UNPROVEN]
    named = f"; {hex_zxid(tail[0].first)} to {hex_zxid(tail[-1].last)} may not be committed" if tail else ""
    if member.stranger is not None:
        yield _stranger(member, member.stranger, named)
        return
    yield Finding(
        code="server-unreachable",
        severity=Severity.WARNING,
        where=member.place.host or f"member {member.place.name}",
        what=f"no server could be asked how far it is{named}",
        remedy="name a server that runs with --zk-host",
    )


def _stranger(member: MemberRun, said: ServerState, named: str) -> Finding:
    """`named`: what is not known to be committed, for that."""
    behind = "their files go on behind that"
    if member.overtaken is not None:
        behind = f"their logs were at {hex_zxid(member.overtaken)} before it was asked, and it does not get there"
    who = "this is not the server of these directories, or it has lost what they hold"
    if member.lagging:
        who = "this is not the server of these directories, or it waits for a majority for good"
    return Finding(
        code="server-lags" if member.lagging else "other-server",
        severity=Severity.WARNING,
        where=member.place.host,
        what=f"{who}: it is at {hex_zxid(said.zxid)}, {behind}; its word does not count{named}",
        remedy="check --zk-host: name the server that writes these directories",
    )


def _doubled(member: MemberRun, one: _Doubled) -> Finding:
    return Finding(
        code="log-overlap",
        severity=Severity.WARNING,
        where=_where(member, one.file),
        what=f"{hex_zxid(one.first)} to {hex_zxid(one.last)} contradict what was logged before them under the same "
        "zxids; this run is not kept",
    )


def _behind_other_records(logs: Sequence[PlacedLog], doubled: Sequence[_Doubled]) -> list[Hole]:
    """What comes at the very end, behind records that contradict kept ones: between kept ones it is a hole anyhow."""
    last = max((p.kept.last for p in logs), default=0)
    return [Hole(max(one.first, last + 1), one.last) for one in doubled if one.last > last]


def _unkept(member: MemberRun, hole: Hole) -> Finding:
    return Finding(
        code="lost-transactions",
        severity=Severity.DAMAGE,
        where=f"member {member.place.name}",
        what=f"{hex_zxid(hole.first)} to {hex_zxid(hole.last)} are not kept: {_CONTRADICTED}",
        remedy=_ANOTHER_MEMBER,
    )


def _who(holders: Sequence[str]) -> str:
    return f"member {holders[0]} has them" if len(holders) == 1 else f"members {', '.join(holders)} have them"


def _hole(member: MemberRun, hole: Hole, holders: Sequence[str]) -> Finding:
    where, missing = f"member {member.place.name}", f"no log holds {hex_zxid(hole.first)} to {hex_zxid(hole.last)}"
    if holders:
        return Finding(code="held-by-another", severity=Severity.NOTE, where=where, what=f"{missing}; {_who(holders)}")
    outrun = member.continued.kept_to is not None and hole.last + 1 == min(p.kept.first for p in member.logs)
    covered = any(p.kept.zxid >= hole.last for p in member.snapshots.values()) and not outrun
    return Finding(
        code="hole" if covered else "lost-transactions",
        severity=Severity.WARNING if covered else Severity.DAMAGE,
        where=where,
        what=missing + ("; a snapshot stands behind them, so what comes after can be restored" if covered else ""),
        remedy=_ANOTHER_MEMBER,
    )


def _from_damage(member: MemberRun, hole: Hole) -> bool:
    """Whether a finding on a damaged file tells of it already."""
    following = {log.path.name: _next_log(member.seen.logs, log) for log in member.seen.logs}
    return any(
        _before(name, d) < hole.first and hole.last < (d.resumes_zxid or following.get(name) or 0)
        for name, damages in member.damage.items()
        for d in damages
    )


def _reason(member: MemberRun, hole: Hole) -> str:
    return "damaged in the log" if _from_damage(member, hole) else "in no log of this member"


def _where(member: MemberRun, name: str) -> str:
    files = {f.path.name: str(f.path) for f in (*member.seen.logs, *member.seen.snapshots)}
    return files.get(name, name)


def backup_zxid(members: Sequence[MemberRun]) -> int:
    """The newest transaction that the backup knows of."""
    return max((_reached(member) for member in members), default=0)


def _reached(member: MemberRun) -> int:
    standing = member.standing()
    asked = (standing.cap or 0) if _over_http(member) else 0  # the same snapshot may be kept already
    return max(standing.last, standing.newest_snapshot, asked)


__all__ = ["GOOD", "LOST", "PARTIAL", "Ending", "Told", "backup_zxid", "exit_code", "foreseen", "told_of"]
