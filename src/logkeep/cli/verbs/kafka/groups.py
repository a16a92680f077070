"""`logkeep kafka groups`: offsets of consumer groups, from an archived `__consumer_offsets`, also deleted ones.

Separate from `info`, because `info` reads no archived data, and this reads the whole archived topic.
"""

import re
from collections.abc import Iterator

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, count, plural
from logkeep.cli.verbs.kafka.declarations import GROUPS
from logkeep.cli.verbs.kafka.info import moment
from logkeep.cli.wiring import chosen_source
from logkeep.config.options import ALL, GROUP
from logkeep.errors import UnknownBackup, UsageError
from logkeep.formats.kafka.internal_topics.offsets_topic import PositionKey
from logkeep.kafka.record.group_positions import TOPIC, GroupPosition, archived_positions
from logkeep.model.ids import BackupId, choose_id
from logkeep.model.segments import LogName, Segment
from logkeep.reports.backups import read_source
from logkeep.repository.chain.commits import SourceRef

_SHOWN = 40


class PositionRow(msgspec.Struct, frozen=True, kw_only=True):
    """The last position of a group in one partition; times in ms since 1970."""

    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    erased_ms: int | None
    """When the cluster deleted it, with its topic or group or because it expired; null when it did not."""


class GroupsReport(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    source: str
    erased: int
    positions: tuple[PositionRow, ...]
    all: bool


def _text(report: GroupsReport, look: TerminalStyle) -> str:
    if not report.positions:
        return look.text(f"no offset of a group is archived in backup {report.id}")
    shown = report.positions if report.all else report.positions[:_SHOWN]
    rows = [
        (r.group, r.topic, str(r.partition), count(r.offset), moment(r.committed_ms, look), moment(r.erased_ms, look))
        for r in shown
    ]
    headers = ("GROUP", "TOPIC", "PART", "OFFSET", "COMMITTED", "ERASED")
    lines = [look.table(headers, rows, right="PART,OFFSET")]
    if len(report.positions) > len(shown):
        lines.append(look.text(f"… and {count(len(report.positions) - len(shown))} more; --all shows them"))
    lines.append(look.text(f"{plural(len(report.positions), 'position')}, {count(report.erased)} of them erased since"))
    return "\n".join(lines)


@verb(GROUPS, report=GroupsReport, text=_text)
def groups(run: Run, backup: str) -> GroupsReport:
    place = chosen_source(run, read_only=True)
    chosen, logs = archived_logs(place, run, backup)
    wanted: tuple[str, ...] = run[GROUP]
    meant = _patterns(wanted)
    found = archived_positions(place, logs.values())
    rows = tuple(_rows({key: found[key] for key in found if not meant or any(p.fullmatch(key.group) for p in meant)}))
    if meant and found and not rows:
        names = ", ".join(sorted({key.group for key in found})[:5])
        raise UsageError(
            f"no group matches {' or '.join(wanted)}", remedy=f"patterns match whole names; among them are: {names}"
        )
    erased = sum(row.erased_ms is not None for row in rows)
    return GroupsReport(id=chosen, source=place.source, erased=erased, positions=rows, all=run[ALL])


def _patterns(texts: tuple[str, ...]) -> list[re.Pattern[str]]:
    try:
        return [re.compile(text) for text in texts]
    except re.error as error:
        raise UsageError(f"{error.pattern!r} is not a pattern: {error}") from error


def _rows(found: dict[PositionKey, GroupPosition]) -> Iterator[PositionRow]:
    """Deleted ones first: only the archive has them."""
    for key, p in sorted(found.items(), key=lambda each: (each[1].erased_ms is None, each[0])):
        yield PositionRow(
            group=key.group,
            topic=key.topic,
            partition=key.partition,
            offset=p.offset,
            leader_epoch=p.leader_epoch,
            metadata=p.metadata,
            committed_ms=p.committed_ms,
            erased_ms=p.erased_ms,
        )


def archived_logs(place: SourceRef, run: Run, text: str) -> tuple[BackupId, dict[LogName, list[Segment]]]:
    """The segments of the internal topic in a backup, by log and in order."""
    from logkeep.repository.backups.content import PartReader, rows_of, served_parts  # noqa: PLC0415 - Arrow, slow to load
    from logkeep.repository.backups.source import read_manifest  # noqa: PLC0415

    folded = read_source(place, run.clock()).folded
    chosen = choose_id(text, sorted(BackupId(e.id) for e in folded.completed))
    entry = folded.entry(chosen)
    if entry is None:
        raise UnknownBackup(f"backup {chosen} is not there any more", subject=place.source)
    manifest = read_manifest(place, entry)
    cuts = tuple(c for c in manifest.cut if c.log.name == TOPIC)
    if not cuts:
        raise UsageError(
            f"{TOPIC} is not in this backup", subject=f"backup {chosen}", remedy="take backups with --internal"
        )
    only = msgspec.structs.replace(manifest, cut=cuts)
    logs: dict[LogName, list[Segment]] = {}
    for segment in rows_of(PartReader(place), only, served_parts(manifest, folded)).to_segments():
        logs.setdefault(segment.log, []).append(segment)
    return chosen, logs
