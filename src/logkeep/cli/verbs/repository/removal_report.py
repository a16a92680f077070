"""What `delete` and `prune` removed: backups, and the space that is freed now and later, with times and reasons."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from logkeep.cli.terminal.text import TerminalStyle, amount, duration, plural
from logkeep.model.time import Rfc3339, rfc3339
from logkeep.repository.upkeep.garbage import GarbageRules
from logkeep.repository.upkeep.garbage_waits import GarbageWait, WaitReason

_MOST_DENIED = 20


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    keep: bool
    reasons: tuple[str, ...]


class TopicDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What the retention of the source says about one archived topic."""

    topic: str
    topic_id: str
    rule: str
    """TIME[,SIZE] of the rule that matches; empty if none does."""
    trimmed: bool
    reason: str
    partitions: int
    """How many of them begin later in older backups."""
    segments: int
    plain_bytes: int


class BackupTrim(msgspec.Struct, frozen=True, kw_only=True):
    """What one backup loses by the trim."""

    id: int
    segments: int
    records: int
    stored_bytes: int


class FreedLater(msgspec.Struct, frozen=True, kw_only=True):
    """Objects that no backup needs, and that this run does not delete yet."""

    phase: str
    """`marked`: the mark is too young; `young`: the object is too young to be marked."""
    objects: int
    stored_bytes: int
    first_at: Rfc3339
    """A run of `prune` or `delete` from then on deletes the first of them."""
    last_at: Rfc3339
    """A run from then on deletes all of them."""
    why: str


class RemovalReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was, or would be, deleted. Space is freed in two phases: garbage is marked now, deleted by a later run."""

    source: str
    decisions: tuple[Decision, ...]
    deleted: tuple[int, ...]
    marked_objects: int
    swept_objects: int
    swept_bytes: int
    waiting_objects: int
    """Garbage that is not old enough yet."""
    denied: tuple[str, ...]
    """Objects that the store refused to delete."""
    unreachable: tuple[str, ...] = ()
    """For ZooKeeper: transactions that can be restored today, and from no backup that stays."""
    dry_run: bool
    freed_later: tuple[FreedLater, ...] = ()
    """All garbage that this run does not delete, by the reason why it has to wait."""
    topics: tuple[TopicDecision, ...] = ()
    """With --source-retention or --topic-retention: every archived topic."""
    trimmed: tuple[BackupTrim, ...] = ()
    """Backups that begin later, in these topics."""
    failed: tuple[int, ...] = ()
    """Backups that were ongoing: they are failed now, and their copies are garbage."""


def freed_later_of(waits: Iterable[GarbageWait], rules: GarbageRules) -> tuple[FreedLater, ...]:
    return tuple(
        FreedLater(
            phase=wait.why,
            objects=wait.objects,
            stored_bytes=wait.stored_bytes,
            first_at=rfc3339(wait.first),
            last_at=rfc3339(wait.last),
            why=_reason(wait.why, rules),
        )
        for wait in waits
    )


def _reason(why: WaitReason, rules: GarbageRules) -> str:
    age, interval = duration(rules.age), duration(rules.interval)
    if why is WaitReason.YOUNG:
        return f"one marks what is {age} old (--gc-age), another one deletes it {interval} later (--gc-interval)"
    return f"marks must be {interval} old (--gc-interval), so that no run uses these objects any more"


def removal_text(report: RemovalReport, look: TerminalStyle) -> str:
    rows = [(str(d.id), "keep" if d.keep else "remove", ", ".join(d.reasons)) for d in report.decisions]
    lines = [look.table(("ID", "VERDICT", "WHY"), rows, right="ID", free="WHY"), ""] if rows else []
    done = "would delete" if report.dry_run else "deleted"
    lines += _topic_lines(report, look)
    fails = "would fail" if report.dry_run else "failed"
    lines += [f"{fails} backup {backup_id}, which was ongoing" for backup_id in report.failed]
    lines.append(f"{done} {len(report.deleted)} of {plural(len(report.decisions), 'backup')} of {report.source}")
    if report.trimmed:
        trims = "would trim" if report.dry_run else "trimmed"
        lines.append(f"{trims} {plural(len(report.trimmed), 'backup')}; `logkeep info` shows where they begin now")
    lines += _space_lines(report, look)
    could = "could no longer be restored" if report.dry_run else "can no longer be restored"
    lines += [look.line(f"{could}: {span}") for span in report.unreachable]
    lines += [look.line(f"WARN  not allowed to delete {name}") for name in report.denied[:_MOST_DENIED]]
    return "\n".join(lines)


def _topic_lines(report: RemovalReport, look: TerminalStyle) -> list[str]:
    rows = [(t.topic, t.rule or "-", "trim" if t.trimmed else "keep", t.reason) for t in report.topics]
    return [look.table(("TOPIC", "RETENTION", "VERDICT", "WHY"), rows, free="WHY"), ""] if rows else []


def _space_lines(report: RemovalReport, look: TerminalStyle) -> Iterator[str]:
    later, would = report.freed_later, "would be " if report.dry_run else ""
    total = amount(sum(one.objects for one in later), sum(one.stored_bytes for one in later))
    shared = "; objects that other backups need stay" if report.deleted or report.trimmed else ""
    facts = {
        f"{would}freed now": amount(report.swept_objects, report.swept_bytes),
        f"{would}freed later": f"{total}{shared}",
    }
    yield look.pairs(facts)
    yield from (look.prose(_later_line(one, look), indent=4) for one in later)


def _later_line(one: FreedLater, look: TerminalStyle) -> str:
    """`  2 objects, 10 KiB: by a prune from 2026-11-18 14:00 +0000 on; marks must be …`"""
    runs = "two prunes" if one.phase == WaitReason.YOUNG else "a prune"
    first, last = (_minute(moment, look) for moment in (one.first_at, one.last_at))
    when = f"from {last} on" if first == last else f"the first from {first} on, all from {last} on"
    return f"  {amount(one.objects, one.stored_bytes)}: by {runs}, {when}; {one.why}"


def _minute(text: str, look: TerminalStyle) -> str:
    """The first whole minute that is not before this time."""
    return look.moment(datetime.fromisoformat(text) + timedelta(seconds=60, microseconds=-1), seconds=False)
