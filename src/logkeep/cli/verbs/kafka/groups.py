"""`logkeep kafka groups`: offsets of consumer groups, from an archived `__consumer_offsets`, also deleted ones.

Separate from `info`, because `info` reads no archived data, and this reads the whole archived topic.
"""

from typing import TYPE_CHECKING

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.verbs.kafka.declarations import GROUPS
from logkeep.cli.verbs.kafka.groups_report import GroupsReport, PositionRow, groups_text, interval_of
from logkeep.cli.wiring import chosen_engine, chosen_source
from logkeep.config.options import ALL, AT_TIME, GROUP, GROUP_HISTORY, RAW_RECORDS, SINCE
from logkeep.errors import UsageError
from logkeep.kafka.group_history.answers import GroupQuestion, GroupsAt, SurePosition
from logkeep.kafka.topic_selection import compiled
from logkeep.model.work import EngineFor
from logkeep.reports.backups import read_source
from logkeep.repository.chain.commits import SourceRef

if TYPE_CHECKING:
    from logkeep.kafka.group_history.run import ArchivedGroups


@verb(GROUPS, report=GroupsReport, text=groups_text)
def groups(run: Run, backup: str) -> GroupsReport:
    _refuse_contradictions(run)
    since: int | None = run[SINCE]
    question = GroupQuestion(run[GROUP], run[AT_TIME], -1 if since is None else since)
    place = chosen_source(run, read_only=True)
    archive = open_groups(run, place, backup, lambda size_bytes: chosen_engine(run, size_bytes, work="read groups"))
    report = GroupsReport(
        id=archive.manifest.id, source=archive.place.source, erased=0, positions=(), all=run[ALL], at_ms=run[AT_TIME]
    )
    return _answer(run, archive, question, report)


def _refuse_contradictions(run: Run) -> None:
    given = {"--at": run[AT_TIME] is not None, "--history": run[GROUP_HISTORY], "--raw": run[RAW_RECORDS]}
    asked = [flag for flag, there in given.items() if there]
    if len(asked) > 1:
        raise UsageError(f"{asked[0]} and {asked[1]} are different questions", remedy="leave one of them out")
    if run[SINCE] is not None and not (run[GROUP_HISTORY] or run[RAW_RECORDS]):
        raise UsageError("--since limits what --history and --raw list", remedy="add one of them, or use --at")
    patterns: tuple[str, ...] = run[GROUP]
    for pattern in patterns:
        compiled(pattern)


def _answer(run: Run, archive: "ArchivedGroups", question: GroupQuestion, report: GroupsReport) -> GroupsReport:
    if run[GROUP_HISTORY]:
        history = archive.history(question)
        return msgspec.structs.replace(
            report, history=history.commits, complete=interval_of(history.complete), unknown=dict(history.unknown)
        )
    if run[RAW_RECORDS]:
        raw = archive.raw(question)
        return msgspec.structs.replace(
            report, raw=raw.records, complete=interval_of(raw.complete), unknown=dict(raw.unknown)
        )
    found = archive.positions(question)
    rows = _rows(found, at_time=question.at_ms is not None)
    return msgspec.structs.replace(
        report,
        positions=rows,
        erased=sum(row.erased_ms is not None for row in rows),
        complete=interval_of(found.complete),
        unknown=dict(found.unknown),
    )


def _rows(found: GroupsAt, *, at_time: bool) -> tuple[PositionRow, ...]:
    """Deleted ones first: only the archive has them. At a time, those that had been deleted are no positions."""
    shown = [each for each in found.positions if not (at_time and each.position.erased_ms is not None)]
    shown.sort(key=lambda e: (e.position.erased_ms is None, e.position.group, e.position.topic, e.position.partition))
    return tuple(map(_row, shown))


def _row(each: SurePosition) -> PositionRow:
    p = each.position
    return PositionRow(
        group=p.group,
        topic=p.topic,
        partition=p.partition,
        offset=p.offset,
        leader_epoch=p.leader_epoch,
        metadata=p.metadata,
        committed_ms=p.committed_ms,
        erased_ms=p.erased_ms,
        topic_id=p.topic_id or None,
        share=p.share,
        sure=each.sure,
    )


def open_groups(run: Run, place: SourceRef, backup: str, engine: EngineFor) -> "ArchivedGroups":
    """The archived groups of a backup that the user names."""
    from logkeep.kafka.group_history.open_backup import archived_groups  # noqa: PLC0415 - Arrow, slow to load

    view = read_source(place, run.clock())
    return archived_groups(place, view.folded, view.completed(backup), engine)
