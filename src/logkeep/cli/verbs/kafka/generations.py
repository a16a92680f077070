"""`logkeep kafka generations`, `kafka generations new` and `cancel`: copies of compacted topics."""

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, count, plural, size
from logkeep.cli.verbs.kafka.declarations import GENERATIONS, GENERATIONS_CANCEL, GENERATIONS_NEW
from logkeep.cli.wiring import chosen_source
from logkeep.config.options import ALL, EXCLUDE, LEASE_TTL, TOPICS
from logkeep.errors import UsageError
from logkeep.kafka.backup.generations.listing import (
    NewGenerations,
    begin_new,
    cancel,
    list_generations,
    plan_cancel,
    plan_new,
)
from logkeep.kafka.topic_selection import TopicFilter, topic_filter
from logkeep.reports.backups import read_source
from logkeep.repository.chain.write_session import writing

_SHOWN = 40


class GenerationRow(msgspec.Struct, frozen=True, kw_only=True):
    """One log in one generation."""

    topic: str
    partition: int
    number: int
    history: str
    state: str
    """`Active`, `Catch-up` or `Passive`."""
    reached: int
    """The offset up to which it is archived."""
    stored_bytes: int
    needed_by: tuple[int, ...]
    """Kept backups that have it."""


class GenerationsReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    generations: tuple[GenerationRow, ...]
    all: bool


def _text(report: GenerationsReport, look: TerminalStyle) -> str:
    if not report.generations:
        return look.text("the newest backup has no compacted topic that is selected")
    shown = report.generations if report.all else report.generations[:_SHOWN]
    rows = [
        (f"{r.topic}/{r.partition}", str(r.number), r.state, count(r.reached), size(r.stored_bytes), _backups(r))
        for r in shown
    ]
    headers = ("LOG", "NUMBER", "STATE", "REACHED", "BYTES", "NEEDED BY")
    lines = [look.table(headers, rows, right="NUMBER,REACHED,BYTES")]
    if len(report.generations) > len(shown):
        lines.append(look.text(f"… and {count(len(report.generations) - len(shown))} more; --all shows them"))
    return "\n".join(lines)


def _backups(row: GenerationRow) -> str:
    backups = row.needed_by
    if len(backups) < 3:
        return ", ".join(map(str, backups)) or "-"
    return f"{plural(len(backups), 'backup')}, {backups[0]} to {backups[-1]}"


@verb(GENERATIONS, report=GenerationsReport, text=_text)
def generations(run: Run) -> GenerationsReport:
    place = chosen_source(run, read_only=True)
    folded = read_source(place, run.clock()).folded
    rows = tuple(
        GenerationRow(
            topic=each.log.name,
            partition=each.log.partition,
            number=each.number,
            history=each.log.history,
            state=each.state,
            reached=each.reached,
            stored_bytes=each.size_bytes,
            needed_by=each.backups,
        )
        for each in list_generations(place, folded, _selected(run))
    )
    return GenerationsReport(source=place.source, generations=rows, all=run[ALL])


def _selected(run: Run) -> TopicFilter:
    include: tuple[str, ...] = run[TOPICS]
    exclude: tuple[str, ...] = run[EXCLUDE]
    return topic_filter(include, exclude, internal=False)


class BegunGeneration(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    number: int
    under_way: bool
    """It was begun before."""


class NewGenerationsReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    generations: tuple[BegunGeneration, ...]
    dry_run: bool


def _new_text(report: NewGenerationsReport, look: TerminalStyle) -> str:
    would = "would begin" if report.dry_run else "begun"
    lines = [
        f"{each.topic}: generation {each.number} {'is under way' if each.under_way else would}"
        for each in report.generations
    ]
    return "\n".join(map(look.text, [*lines, "the next runs of `kafka backup` copy it beside the active one"]))


@verb(GENERATIONS_NEW, report=NewGenerationsReport, text=_new_text)
def new(run: Run) -> NewGenerationsReport:
    named, selects = _named_topics(run), _selected(run)
    place = chosen_source(run, read_only=run.dry_run)
    if run.dry_run:
        folded = read_source(place, run.clock()).folded
        return _new_report(place.source, plan_new(place, folded, named, selects, iter(run.token, "")), dry_run=True)
    with writing(place, "generations new", run.clock, run.token, run[LEASE_TTL]) as session:
        return _new_report(place.source, begin_new(session, named, selects), dry_run=False)


def _named_topics(run: Run) -> tuple[str, ...]:
    named: tuple[str, ...] = run[TOPICS]
    if not named:
        raise UsageError("no topic is named", remedy="pass --topics with a pattern of whole names")
    return named


def _new_report(source: str, planned: NewGenerations, *, dry_run: bool) -> NewGenerationsReport:
    rows = [
        *(BegunGeneration(topic=b.topic, number=b.number, under_way=False) for b in planned.begun),
        *(BegunGeneration(topic=c.topic, number=c.number, under_way=True) for c in planned.under_way),
    ]
    return NewGenerationsReport(
        source=source, generations=tuple(sorted(rows, key=lambda row: row.topic)), dry_run=dry_run
    )


class CancelledGeneration(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    number: int


class CancelledGenerationsReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    generations: tuple[CancelledGeneration, ...]
    dry_run: bool


def _cancelled_text(report: CancelledGenerationsReport, look: TerminalStyle) -> str:
    done = "would be cancelled" if report.dry_run else "cancelled"
    lines = [f"{each.topic}: generation {each.number} {done}" for each in report.generations]
    return "\n".join(map(look.text, [*lines, "the active generation stays in use; `prune` deletes what was copied"]))


@verb(GENERATIONS_CANCEL, report=CancelledGenerationsReport, text=_cancelled_text)
def cancel_catch_ups(run: Run) -> CancelledGenerationsReport:
    named, selects = _named_topics(run), _selected(run)
    place = chosen_source(run, read_only=run.dry_run)
    if run.dry_run:
        found = plan_cancel(read_source(place, run.clock()).folded, named, selects)
    else:
        with writing(place, "generations cancel", run.clock, run.token, run[LEASE_TTL]) as session:
            found = cancel(session, named, selects)
    rows = [CancelledGeneration(topic=c.topic, number=c.number) for c in found]
    ordered = sorted(rows, key=lambda row: row.topic)
    return CancelledGenerationsReport(source=place.source, generations=tuple(ordered), dry_run=run.dry_run)
