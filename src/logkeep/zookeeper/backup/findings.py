"""What a backup tells of what it met: findings, lost transactions, and the exit code that follows from them. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec

from logkeep.formats.zookeeper.names import epoch_of, follows, hex_zxid
from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import Proof
from logkeep.zookeeper.backup.damaged_logs import damage_findings, from_damage
from logkeep.zookeeper.backup.member import MemberRun
from logkeep.zookeeper.backup.other_members import ASK_ANOTHER, Elsewhere, who
from logkeep.zookeeper.backup.round_rules import MemberProgress, RoundHole, borders, holes, reached, settled
from logkeep.zookeeper.model.archived import FileOrigin, LogFileEnding
from logkeep.zookeeper.model.findings import NAME_LOG_DIR
from logkeep.zookeeper.model.sink import LostRange, PlacedLog
from logkeep.zookeeper.server.four_letter import ServerState

GOOD, PARTIAL, LOST = 0, 2, 21
_PARTIAL = {
    "server-unreachable", "other-server", "server-lags", "header-rewritten", "snapshot-fuzzy", "snapshot-unproven",
    "copied-again", "held-elsewhere", "log-overlap", "snapshot-damaged", "stray-file", "no-log-seen",
}  # fmt: skip
_CONTRADICTED = "they stand behind records that are other ones in an earlier log"


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
        *damage_findings(member, logs, others),
        *_logged_again(member),
        *(_hole(member, hole, others.holders(hole)) for hole in open_holes if not from_damage(member, hole)),
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
            found[0] = replace(found[0], kept=msgspec.structs.replace(first, borders=((before, first.first),)))
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
    for name, found in member.unusable.items():
        never_whole = not found.finished if found.finished is not None else name == newest and not member.still
        unfinished = never_whole and bool(member.snapshots or member.known_snapshots)
        yield Finding(
            code="snapshot-unfinished" if unfinished else "snapshot-damaged",
            severity=Severity.NOTE if unfinished else Severity.WARNING,
            where=member.path_of(name),
            what=f"{'being written, or never finished' if unfinished else 'damaged'}: {found.why}; it is not kept",
            remedy="" if unfinished else "check the disk of this server; other snapshots and the logs do without it",
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


def _logged_again(member: MemberRun) -> Iterable[Finding]:
    for name, found in member.again.items():
        for again in found:
            yield Finding(
                code="logged-again",
                severity=Severity.NOTE,
                where=member.path_of(name),
                what=f"{hex_zxid(again.first)} to {hex_zxid(again.last)} were logged again, the same (byte "
                f"{again.position}); they are kept once",
            )


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
    if not _over_http(member) and standing.cap is None and member.lacks_logs:
        yield Finding(
            code="no-log-seen",
            severity=Severity.WARNING,
            where=str(member.seen.log_dir),
            what="no log lies here, and no server could be asked whether there should be one",
            remedy=NAME_LOG_DIR,
        )
    if _over_http(member) or settled(standing):
        return
    if member.lacks_logs:
        yield Finding(
            code="no-log",
            severity=Severity.DAMAGE,
            where=str(member.seen.log_dir),
            what=f"no log lies here, and the server has processed {hex_zxid(standing.cap or 0)}, behind its newest "
            f"snapshot ({hex_zxid(standing.newest_snapshot)}): its logs are elsewhere",
            remedy=NAME_LOG_DIR,
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
            "--zk-host names; " + ASK_ANOTHER,
        )


def _behind(standing: MemberProgress) -> str:
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
    return member.place.origin is FileOrigin.ADMIN


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
        where=member.path_of(one.file),
        what=f"{hex_zxid(one.first)} to {hex_zxid(one.last)} contradict what was logged before them under the same "
        "zxids; this run is not kept",
    )


def _behind_other_records(logs: Sequence[PlacedLog], doubled: Sequence[_Doubled]) -> list[RoundHole]:
    """What comes at the very end, behind records that contradict kept ones: between kept ones it is a hole anyhow."""
    last = max((p.kept.last for p in logs), default=0)
    return [RoundHole(max(one.first, last + 1), one.last) for one in doubled if one.last > last]


def _unkept(member: MemberRun, hole: RoundHole) -> Finding:
    return Finding(
        code="lost-transactions",
        severity=Severity.DAMAGE,
        where=f"member {member.place.name}",
        what=f"{hex_zxid(hole.first)} to {hex_zxid(hole.last)} are not kept: {_CONTRADICTED}",
        remedy=ASK_ANOTHER,
    )


def _hole(member: MemberRun, hole: RoundHole, holders: Sequence[str]) -> Finding:
    where, missing = f"member {member.place.name}", f"no log holds {hex_zxid(hole.first)} to {hex_zxid(hole.last)}"
    if holders:
        return Finding(code="held-by-another", severity=Severity.NOTE, where=where, what=f"{missing}; {who(holders)}")
    outrun = member.continued.kept_to is not None and hole.last + 1 == min(p.kept.first for p in member.logs)
    covered = any(p.kept.zxid >= hole.last for p in member.snapshots.values()) and not outrun
    return Finding(
        code="hole" if covered else "lost-transactions",
        severity=Severity.WARNING if covered else Severity.DAMAGE,
        where=where,
        what=missing + ("; a snapshot stands behind them, so what comes after can be restored" if covered else ""),
        remedy=ASK_ANOTHER,
    )


def _reason(member: MemberRun, hole: RoundHole) -> str:
    return "damaged in the log" if from_damage(member, hole) else "in no log of this member"


def backup_zxid(members: Sequence[MemberRun]) -> int:
    """The newest transaction that the backup knows of."""
    return max((_reached(member) for member in members), default=0)


def _reached(member: MemberRun) -> int:
    standing = member.standing()
    asked = (standing.cap or 0) if _over_http(member) else 0  # the same snapshot may be kept already
    return max(standing.last, standing.newest_snapshot, asked)


__all__ = ["GOOD", "LOST", "PARTIAL", "LogFileEnding", "Told", "backup_zxid", "exit_code", "foreseen", "told_of"]
