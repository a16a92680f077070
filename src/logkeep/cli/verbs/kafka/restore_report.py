"""What `logkeep kafka restore` says: the plan before, and what became of it after."""

from collections.abc import Iterator
from datetime import timedelta

import msgspec

from logkeep.cli.terminal.text import TerminalStyle, duration, plural, size
from logkeep.cli.verbs.restore_text import finding_lines, group_lines, partition_lines, planned_lines
from logkeep.model.findings import Finding
from logkeep.repository.restores import RestoredGroup, RestoredPartition, RestoreVerdict

BAD = frozenset({RestoreVerdict.FAILED, RestoreVerdict.CHANGED})


class OfflineFile(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    size: int
    records: int
    sha256: str


class OfflinePart(msgspec.Struct, frozen=True, kw_only=True):
    """Of a restore into the directories of a broker that is stopped."""

    running: bool
    """Whether the broker still runs."""
    elsewhere: tuple[str, ...]
    """Partitions without a directory here."""
    procedure: str
    """What is done before and after, step by step."""
    files: tuple[OfflineFile, ...]
    """As they were read back."""


class KafkaRestoreReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    backup: int
    restore: int | None
    """The id to resume, abort or look up (of a restore into files only to look up); null on a dry run."""
    cluster_id: str
    """Of the target."""
    offsets: str
    why: str
    """Why offsets are kept or not."""
    topics: tuple[str, ...]
    """In the target."""
    records: int
    """On a dry run at most so many: those of aborted transactions are counted."""
    bytes: int
    seconds: float
    """That it took; on a dry run about what it will take."""
    verdict: str
    """`proven`, `unproven`, `failed`, or `planned` on a dry run; `changed`: it had ended well, and compared once more,
    target or archive are no longer what they were."""
    partitions: tuple[RestoredPartition, ...]
    groups: tuple[RestoredGroup, ...]
    group_names: tuple[str, ...]
    refusals: tuple[str, ...]
    """Why the plan must not be carried out; only on a dry run, otherwise it is an error."""
    refusal_code: int = 0
    """With which a run would end."""
    findings: tuple[Finding, ...]
    offline: OfflinePart | None = None
    """Only with --to-log-dirs."""
    dry_run: bool


def restore_text(report: KafkaRestoreReport, look: TerminalStyle) -> str:
    if report.dry_run:
        return "\n".join(plan_lines(report, look))
    state = look.state("FAIL" if report.verdict in BAD else "OK")
    name = "restore into files" if report.offline else f"restore {report.restore}"
    head = f"{state}  {name} of backup {report.backup}: {report.verdict}"
    lines = [head, look.text(_amount(report)), look.text(_where(report)), *_blocks(report, look)]
    lines += finding_lines(report.findings, look, every=False)
    return "\n".join([*lines, *_what_now(report, look)])


def _blocks(report: KafkaRestoreReport, look: TerminalStyle) -> Iterator[str]:
    hint = "--json has every one" if report.offline else f"`logkeep receipts show {report.restore} --all` has every one"
    if report.partitions:
        offline = report.offline is not None  # files are compared before they are in place
        table = partition_lines(report.partitions, look, every=False, hint=hint, compared=not offline, details=offline)
        yield from ["", *table]
    if report.groups:
        yield from ["", *group_lines(report.groups, look, every=False, hint=hint)]
    yield ""


def _what_now(report: KafkaRestoreReport, look: TerminalStyle) -> list[str]:
    """The next command, for somebody who has been up for hours."""
    if report.offline:
        return [
            look.text("now go on with the procedure that the dry run prints: start the broker, then check"),
            look.text(f"receipt: logkeep receipts show {report.restore}"),
        ]
    if report.verdict == RestoreVerdict.CHANGED:
        return ["", *map(look.text, _since(report))]
    if report.verdict == RestoreVerdict.FAILED:
        return ["", *map(look.text, _ways_on(report))]
    return [look.text(f"receipt: logkeep receipts show {report.restore}")]


def _since(report: KafkaRestoreReport) -> Iterator[str]:
    yield "the restore itself had ended well; this is what happened since, and nothing was changed now"
    yield f"its own receipt:           logkeep receipts show {report.restore}"
    yield f"groups can still be set:   logkeep kafka groups restore {report.restore}"
    yield "records that are missing:  restore them again, under another name (--rename)"


def _ways_on(report: KafkaRestoreReport) -> Iterator[str]:
    if any(finding.code in _FOR_GOOD for finding in report.findings):
        yield "it cannot go on where somebody else has written or deleted"
        yield f"give it up, then begin anew:  logkeep kafka restore abort {report.restore}"
        return
    yield f"when it is mended, go on:  logkeep kafka restore --resume {report.restore}"
    yield f"or give it up:             logkeep kafka restore abort {report.restore}"


def _where(report: KafkaRestoreReport) -> str:
    """What was not finished has no offsets to speak of yet."""
    offsets = (
        "" if report.verdict == RestoreVerdict.FAILED else f", offsets {_OFFSETS.get(report.offsets, report.offsets)}"
    )
    return f"to cluster {report.cluster_id} in {duration(timedelta(seconds=report.seconds))}{offsets}"


def _amount(report: KafkaRestoreReport) -> str:
    most = "up to " if report.dry_run and not report.offline else ""
    return f"{plural(len(report.topics), 'topic')} · {most}{plural(report.records, 'record')} · {size(report.bytes)}"


def plan_lines(report: KafkaRestoreReport, look: TerminalStyle) -> Iterator[str]:
    yield look.text(f"restore of backup {report.backup} of {report.source} to cluster {report.cluster_id}")
    yield look.text(_amount(report) + ("" if report.offline else f" · {_about(report.seconds)}"))
    yield look.prose(f"offsets: {report.offsets} ({report.why})", indent=len("offsets: "))
    if report.partitions:
        yield from ["", *planned_lines(report.partitions, look), ""]
    yield from _groups(report, look)
    yield from finding_lines(report.findings, look, every=False)
    for refusal in report.refusals:
        yield look.prose(f"REFUSED {refusal}", indent=len("REFUSED "))
    if report.offline:
        yield from _offline_lines(report.offline, look)


def _about(seconds: float) -> str:
    """Below this the start of all things counts for more than the data: nothing better can be promised."""
    return f"about {duration(seconds)}" if seconds >= _SHORT_S else "less than a minute"


def _groups(report: KafkaRestoreReport, look: TerminalStyle) -> Iterator[str]:
    if not report.group_names:
        return
    yield look.prose(f"{plural(len(report.group_names), 'group')} to be set: {_some(report.group_names)}", indent=2)
    over = [g for g in report.groups if g.previous_offset is not None and g.previous_offset != g.offset]
    if over:
        yield look.text(f"{plural(len(over), 'position')} of groups in the target will be overwritten")


def _offline_lines(offline: OfflinePart, look: TerminalStyle) -> Iterator[str]:
    if offline.running:
        yield look.text("the broker runs: it must be stopped before the files are written")
    if offline.elsewhere:
        missing = plural(len(offline.elsewhere), "partition")
        yield look.prose(f"no directory here for {missing}: {_some(offline.elsewhere)}", indent=2)
    yield ""
    yield from map(look.line, offline.procedure.splitlines())


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:_NAMED]) + (" …" if len(names) > _NAMED else "")


_OFFSETS = {"preserve": "preserved", "translate": "translated"}
_FOR_GOOD = frozenset({"foreign-writer", "marker-misplaced", "topic-gone"})
"""Findings after which going on leads nowhere. A failed proof is none: perhaps only the right to read was missing."""
_NAMED, _SHORT_S = 8, 30.0
