"""Findings, lost transactions and exit code of a backup, from the state of its members. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec

from logkeep.formats.zookeeper.names import epoch_of, follows, hex_zxid
from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import Proof
from logkeep.zookeeper.backup.damaged_logs import damage_findings, from_damage
from logkeep.zookeeper.backup.member import MemberRun
from logkeep.zookeeper.backup.other_members import ASK_ANOTHER, OtherMembers, holders_text
from logkeep.zookeeper.backup.round_rules import MemberProgress, RoundHole, borders, holes, reached, settled
from logkeep.zookeeper.model.archived import FileOrigin
from logkeep.zookeeper.model.findings import NAME_LOG_DIR
from logkeep.zookeeper.model.sink import LostRange, PlacedLog
from logkeep.zookeeper.server.four_letter import ServerState

GOOD, PARTIAL, LOST = 0, 2, 21
_PARTIAL = {
    "server-unreachable", "other-server", "server-lags", "header-rewritten", "snapshot-fuzzy", "snapshot-unproven",
    "copied-again", "held-elsewhere", "log-overlap", "snapshot-damaged", "stray-file", "no-log-seen",
}  # fmt: skip
_CONTRADICTED = "they come after records that differ from an earlier log"


@dataclass(frozen=True)
class MemberOutcome:
    """What is reported and archived of one member."""

    findings: tuple[Finding, ...]
    lost: tuple[LostRange, ...]
    """Transactions that are in no piece."""
    logs: tuple[PlacedLog, ...]
    """Archived pieces; none overlaps another."""


def member_outcome(member: MemberRun, others: OtherMembers) -> MemberOutcome:
    """`others`: what is archived of the other members."""
    logs, contradicting = _without_overlaps(member)
    logs = _with_borders(member, logs)
    kept_to = member.continued.kept_to
    before = [(kept_to, kept_to)] if kept_to is not None else []
    open_holes = holes([*before, *((p.kept.first, p.kept.last) for p in logs)])
    torn, not_kept = list(_torn(member)), _after_other_records(logs, contradicting)
    findings = [
        *_strays(member),
        *_bad_snapshots(member),
        *(_contradicting(member, one) for one in contradicting),
        *(_not_kept(member, hole) for hole in not_kept),
        *damage_findings(member, logs, others),
        *_logged_again(member),
        *(_hole(member, hole, others.holders(hole)) for hole in open_holes if not from_damage(member, hole)),
        *_open_end(member),
        *_server_not_asked(member),
    ]
    lost = [LostRange(member.place.name, h.first, h.last, _reason(member, h)) for h in open_holes]
    lost += [LostRange(member.place.name, h.first, h.last, _CONTRADICTED) for h in not_kept]
    return MemberOutcome(tuple(findings), (*lost, *torn), tuple(logs))


def kept_runs(member: MemberRun) -> list[tuple[int, int]]:
    """First and last of its archived runs, without contradicting ones."""
    return [(placed.kept.first, placed.kept.last) for placed in _without_overlaps(member)[0]]


def preview_findings(member: MemberRun) -> list[Finding]:
    """Findings that are known before anything is copied."""
    return [*_strays(member), *_server_not_asked(member)]


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
class _ContradictingRun:
    """Records of one epoch that differ from archived ones, or come after such."""

    file: str
    first: int
    last: int


def _without_overlaps(member: MemberRun) -> tuple[list[PlacedLog], list[_ContradictingRun]]:
    """Pieces in order of zxid without those that overlap an earlier one; and records that contradict these."""
    kept: list[PlacedLog] = []
    contradicting = [_ContradictingRun(name, o.first, o.last) for name, others in member.others.items() for o in others]
    for one in sorted(member.logs, key=lambda p: (p.kept.first, -p.kept.last)):
        if not kept or one.kept.first > kept[-1].kept.last:
            kept.append(one)
        elif one.kept.last > kept[-1].kept.last or not member.holds(kept[-1].kept, one.kept):
            contradicting.append(_ContradictingRun(one.kept.name, one.kept.first, one.kept.last))
    return kept, contradicting


def _with_borders(member: MemberRun, logs: Sequence[PlacedLog]) -> list[PlacedLog]:
    pieces = borders([p.kept for p in logs], member.side_by_side)
    found = [replace(placed, kept=kept) for placed, kept in zip(logs, pieces, strict=True)]
    before = member.continued.kept_to
    if found and before is not None and member.follows_archive(found[0].kept) and follows(before, found[0].kept.first):
        first = found[0].kept
        if epoch_of(before) != epoch_of(first.first):
            found[0] = replace(found[0], kept=msgspec.structs.replace(first, borders=((before, first.first),)))
    return found


def _strays(member: MemberRun) -> Iterable[Finding]:
    for path in member.files.strays:
        yield Finding(
            code="stray-file",
            severity=Severity.WARNING,
            where=path,
            what="no server writes a file of this name, and every server reads it; it is not copied",
            remedy="move it out of the directory: it can keep the server from starting",
        )


def _bad_snapshots(member: MemberRun) -> Iterable[Finding]:
    newest = member.files.snapshots[-1].path.name if member.files.snapshots else ""
    for name, found in member.unusable.items():
        never_whole = not found.finished if found.finished is not None else name == newest and not member.still
        unfinished = never_whole and member.has_base
        yield Finding(
            code="snapshot-unfinished" if unfinished else "snapshot-damaged",
            severity=Severity.NOTE if unfinished else Severity.WARNING,
            where=member.path_of(name),
            what=f"{'being written, or never finished' if unfinished else 'damaged'}: {found.why}; it is not kept",
            remedy="" if unfinished else "check the disk of this server; other snapshots and the logs do without it",
        )
    if not member.has_base:
        yield Finding(
            code="no-snapshot",
            severity=Severity.DAMAGE,
            where=f"member {member.place.name}",
            what="no whole snapshot was found: nothing can be restored from this member alone",
            remedy="restart the server, which writes one, or back up another member",
        )


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
    """Transactions that the server has processed and that are in none of its files, after the last archived record."""
    progress = member.progress()
    cap = progress.cap
    if _over_http(member) or cap is None or settled(progress) or max(progress.last, progress.newest_snapshot) >= cap:
        return
    last = progress.newest_snapshot if member.lacks_logs else progress.last
    if epoch_of(last) == epoch_of(cap):
        yield LostRange(member.place.name, last + 1, cap, "processed by the server, in no log")


def _open_end(member: MemberRun) -> Iterable[Finding]:
    progress = member.progress()
    if not _over_http(member) and progress.cap is None and member.lacks_logs:
        yield Finding(
            code="no-log-seen",
            severity=Severity.WARNING,
            where=str(member.files.log_dir),
            what="there is no log here, and no server could be asked whether there should be one",
            remedy=NAME_LOG_DIR,
        )
    if _over_http(member) or settled(progress):
        return
    if member.lacks_logs:
        yield Finding(
            code="no-log",
            severity=Severity.DAMAGE,
            where=str(member.files.log_dir),
            what=f"there is no log here, and the server has processed {hex_zxid(progress.cap or 0)}, after its newest "
            f"snapshot ({hex_zxid(progress.newest_snapshot)}): its logs are elsewhere",
            remedy=NAME_LOG_DIR,
        )
        return
    if progress.last < progress.fuzzy_end and progress.fuzzy_end > progress.newest_snapshot:
        yield Finding(
            code="fuzzy-end-open",
            severity=Severity.WARNING,
            where=f"member {member.place.name}",
            what=f"the newest snapshot needs the log up to {hex_zxid(progress.fuzzy_end)}, "
            f"which ends at {hex_zxid(progress.last)}",
            remedy="an older snapshot may do; a next backup will have the rest",
        )
    if not reached(progress):
        yield Finding(
            code="behind-the-server",
            severity=Severity.DAMAGE,
            where=f"member {member.place.name}",
            what=_behind(progress),
            remedy="check that the directories (--data-dir; --zk-data-dir of zkbackup) are those of the server that "
            "--zk-host names; " + ASK_ANOTHER,
        )


def _behind(progress: MemberProgress) -> str:
    """The number of transactions between two epochs is unknown: the epochs are then reported too."""
    cap, end = progress.cap or 0, max(progress.last, progress.newest_snapshot)
    if epoch_of(cap) == epoch_of(end):
        return f"the server has processed {hex_zxid(cap)}, its logs end at {hex_zxid(progress.last)}"
    return (
        f"the server is in epoch {epoch_of(cap)} and has processed {hex_zxid(cap)}, "
        f"its files end in epoch {epoch_of(end)}, at {hex_zxid(end)}"
    )


def _over_http(member: MemberRun) -> bool:
    """There are no logs then: the findings of the download say how good the snapshot is."""
    return member.place.origin is FileOrigin.ADMIN


def _server_not_asked(member: MemberRun) -> Iterable[Finding]:
    if member.state is not None:
        return
    tail = [p.kept for p in member.logs if p.kept.proof is Proof.UNPROVEN]
    named = f"; {hex_zxid(tail[0].first)} to {hex_zxid(tail[-1].last)} may not be committed" if tail else ""
    if member.other_server is not None:
        yield _other_server(member, member.other_server, named)
        return
    yield Finding(
        code="server-unreachable",
        severity=Severity.WARNING,
        where=member.place.host or f"member {member.place.name}",
        what=f"no server could be asked for its last zxid{named}",
        remedy="name a running server with --zk-host",
    )


def _other_server(member: MemberRun, answer: ServerState, named: str) -> Finding:
    """`named`: what is therefore not known to be committed."""
    behind = "their files continue after that"
    if member.overtaken is not None:
        behind = f"their logs were at {hex_zxid(member.overtaken)} before it was asked, and it does not reach that"
    who = "this is not the server of these directories, or it has lost what they contain"
    if member.lagging:
        who = "this is not the server of these directories, or it waits for a majority that does not come"
    return Finding(
        code="server-lags" if member.lagging else "other-server",
        severity=Severity.WARNING,
        where=member.place.host,
        what=f"{who}: it is at {hex_zxid(answer.zxid)}, {behind}; its answer is not used{named}",
        remedy="check --zk-host: name the server that writes these directories",
    )


def _contradicting(member: MemberRun, one: _ContradictingRun) -> Finding:
    return Finding(
        code="log-overlap",
        severity=Severity.WARNING,
        where=member.path_of(one.file),
        what=f"{hex_zxid(one.first)} to {hex_zxid(one.last)} contradict what was logged before them under the same "
        "zxids; this run is not archived",
    )


def _after_other_records(logs: Sequence[PlacedLog], contradicting: Sequence[_ContradictingRun]) -> list[RoundHole]:
    """What comes after records that contradict archived ones, at the very end: elsewhere it is reported as a hole."""
    last = max((p.kept.last for p in logs), default=0)
    return [RoundHole(max(one.first, last + 1), one.last) for one in contradicting if one.last > last]


def _not_kept(member: MemberRun, hole: RoundHole) -> Finding:
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
        return Finding(
            code="held-by-another", severity=Severity.NOTE, where=where, what=f"{missing}; {holders_text(holders)}"
        )
    outrun = member.continued.kept_to is not None and hole.last + 1 == min(p.kept.first for p in member.logs)
    covered = any(p.kept.zxid >= hole.last for p in member.snapshots.values()) and not outrun
    return Finding(
        code="hole" if covered else "lost-transactions",
        severity=Severity.WARNING if covered else Severity.DAMAGE,
        where=where,
        what=missing + ("; a later snapshot exists, so what comes after it can be restored" if covered else ""),
        remedy=ASK_ANOTHER,
    )


def _reason(member: MemberRun, hole: RoundHole) -> str:
    return "damaged in the log" if from_damage(member, hole) else "in no log of this member"


def backup_zxid(members: Sequence[MemberRun]) -> int:
    """The newest transaction in the backup."""
    return max((_reached(member) for member in members), default=0)


def _reached(member: MemberRun) -> int:
    progress = member.progress()
    asked = (progress.cap or 0) if _over_http(member) else 0  # the same snapshot may already be archived
    return max(progress.last, progress.newest_snapshot, asked)
