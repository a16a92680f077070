"""`logkeep kafka schemas check`: schema ids in archived records against the archived registry."""

from collections.abc import Iterator

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, count, plural
from logkeep.cli.verbs.kafka.schemas.declarations import CHECK
from logkeep.cli.verbs.kafka.schemas.listing import schemas_backup
from logkeep.cli.wiring import chosen_engine, expect_work, refuse_contradictions
from logkeep.config.options import SCHEMAS_SAMPLE, SCHEMAS_TOPIC
from logkeep.kafka.registry.id_use import SideUse, UseVerdict
from logkeep.kafka.registry.values import ArchivedRegistry
from logkeep.kafka.verify.schema_ids import LABEL, find_ids, id_pieces
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import BackupId
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.holds import reading
from logkeep.repository.chain.owner import this_process
from logkeep.repository.verify.checks import VerifySample

_UNIT_BYTES = 256 << 20


class SideRow(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    side: str
    """`key` or `value`."""
    verdict: str
    """`schemas`: nearly all begin with an id; `mixed`: some do; `numbers`: they only look so; `none`."""
    records: int
    with_known_id: int


class MissingId(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    topic: str
    side: str
    records: int
    partition: int
    offset: int
    """The first one, in this partition."""
    erased: bool
    """The registry deleted it for good; the archive has its schema."""
    certain: bool
    """False: few records of the topic begin with an id, so this one may be chance; or another context has the id."""
    contexts: tuple[str, ...] = ()
    """Contexts of the registry that have a schema with this id, none of them with a subject of the topic; `.` is the
    usual one."""


class SchemasCheckReport(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    source: str
    sample: str
    objects: int
    read_objects: int
    read_bytes: int
    sides: tuple[SideRow, ...]
    missing: tuple[MissingId, ...]
    unlisted_records: int
    """With unknown ids beyond the thousand that are listed for a topic."""
    findings: tuple[Finding, ...]


def _text(report: SchemasCheckReport, look: TerminalStyle) -> str:
    lines = list(_missing_lines(report, look))
    for finding in report.findings:
        lines.append(look.prose(f"{look.state('FAIL')}  {finding.where}: {finding.what}", indent=6))
    with_schemas = [s for s in report.sides if s.verdict in {UseVerdict.SCHEMAS, UseVerdict.MIXED}]
    numbers = [s for s in report.sides if s.verdict == UseVerdict.NUMBERS]
    for side in numbers:
        what = f"{side.topic}, {side.side}s: all have 8 bytes and no known id: taken for numbers"
        lines.append(look.prose(f"{look.state('NOTE')}  {what}", indent=6))
    records = sum(s.with_known_id for s in report.sides)
    state = look.state("FAIL" if _code(report) == 10 else "WARN" if _code(report) else "OK")
    topics = plural(len({s.topic for s in with_schemas}), "topic")
    known = f"{topics} with schemas, {plural(records, 'known id')} in records"
    lines.append(look.prose(f"{state}  {known}", indent=6))
    if report.read_objects < report.objects:
        lines.append(look.text(f"a sample: {count(report.read_objects)} of {plural(report.objects, 'object')}"))
    return "\n".join(lines)


def _missing_lines(report: SchemasCheckReport, look: TerminalStyle) -> Iterator[str]:
    if report.missing:
        rows = [
            (str(m.id), m.topic, m.side, count(m.records), str(m.partition), count(m.offset), _note(m))
            for m in report.missing
        ]
        headers = ("ID", "TOPIC", "SIDE", "RECORDS", "PART", "FIRST OFFSET", "NOTES")
        yield look.table(headers, rows, right="ID,RECORDS,PART,FIRST OFFSET", free="NOTES")
    if report.unlisted_records:
        yield look.text(f"… and {plural(report.unlisted_records, 'record')} with other unknown ids")


def _note(missing: MissingId) -> str:
    if missing.contexts:
        return f"only in context {', '.join(missing.contexts)}"
    if not missing.certain:
        return "possible: few records of the topic begin so"
    return "deleted for good; `schemas show` has it" if missing.erased else "not in the archived registry"


def _code(report: SchemasCheckReport) -> int:
    if any(m.certain for m in report.missing) or any(f.severity is Severity.DAMAGE for f in report.findings):
        return 10
    return 2 if report.missing else 0


@verb(CHECK, report=SchemasCheckReport, text=_text, exit_code=_code)
def check(run: Run, backup: str) -> SchemasCheckReport:
    refuse_contradictions(run)
    found = schemas_backup(run, backup, read_only=False)
    place, share = found.place, run[SCHEMAS_SAMPLE]
    sample, day = VerifySample(share.numerator, share.denominator), run.clock().date()
    with reading(place, BackupId(found.manifest.id), this_process(run.token()), "verify", run.token):
        rows = rows_of(PartReader(place), found.manifest, served_parts(found.manifest, found.folded))
        pieces = id_pieces(place, found.folded, found.manifest, rows, {run[SCHEMAS_TOPIC]})
        taken = [p for p in pieces if sample.takes(p.segment.token, day)]
        read_bytes = sum(p.segment.stored_bytes for p in taken)
        expect_work(run, read_bytes, _UNIT_BYTES, LABEL)
        ids = find_ids(place, taken, found.registry, chosen_engine(run, read_bytes, work=LABEL))
    return SchemasCheckReport(
        id=found.manifest.id,
        source=place.source,
        sample=str(sample),
        objects=len(pieces),
        read_objects=len(taken),
        read_bytes=ids.size_bytes,
        sides=tuple(map(_side_row, ids.uses)),
        missing=tuple(row for use in ids.uses for row in missing_ids(use, found.registry)),
        unlisted_records=sum(use.unlisted for use in ids.uses if use.verdict is UseVerdict.SCHEMAS),
        findings=ids.findings,
    )


def _side_row(use: SideUse) -> SideRow:
    return SideRow(
        topic=use.topic,
        side=use.side,
        verdict=use.verdict.value,
        records=use.records,
        with_known_id=use.known,
    )


def missing_ids(use: SideUse, registry: ArchivedRegistry) -> Iterator[MissingId]:
    """The unknown ids of a topic with schemas."""
    if use.verdict not in {UseVerdict.SCHEMAS, UseVerdict.MIXED}:
        return
    homes = registry.contexts_of_subjects().get(f"{use.topic}-{use.side}", ("",))
    usual = frozenset[int]() if "" in homes else registry.known_ids()
    for each in use.unknown:
        other = tuple(context for context in registry.contexts_with(each.id) if context not in homes)
        contexts = (".", *other) if each.id in usual else other
        yield MissingId(
            id=each.id,
            topic=use.topic,
            side=use.side,
            records=each.records,
            partition=each.partition,
            offset=each.offset,
            erased=any(registry.find(each.id, context) is not None for context in homes),
            certain=use.verdict is UseVerdict.SCHEMAS and not contexts,
            contexts=contexts,
        )
