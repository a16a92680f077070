"""`logkeep sql`: query a backup with SQL."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, plural
from logkeep.cli.verbs.declarations import SQL_QUERY
from logkeep.cli.verbs.restore_text import finding_lines
from logkeep.cli.wiring import chosen_source, opened_store, spark_engine, use_directories
from logkeep.config.options import JSON, SQL_AS, SQL_BACKUP, SQL_DECODE, SQL_FROM, SQL_LIMIT, SQL_OUTPUT
from logkeep.errors import Damaged, UsageError
from logkeep.kinds import KAFKA, ZOOKEEPER, kind_of
from logkeep.model.findings import Finding, Severity
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.access import local_root
from logkeep.store.readonly import ReadOnlyStore

if TYPE_CHECKING:
    from logkeep.engine.spark.sql.query import QueryResult, ResultSink
    from logkeep.engine.spark.sql.tables import QueryTable
    from logkeep.kafka.record.backup_view import KafkaBackupView

Cell = str | int | float | bool | None
_MOST_IN_A_TABLE = 1000


class SqlReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    """Empty for a dataset."""
    backup: str
    """Its id; the URL of a dataset."""
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...] = ()
    """Bytes are text where they are UTF-8, else `0x…`; other types that JSON does not have are text."""
    more: bool = False
    """Whether the answer has more rows than `limit`."""
    findings: tuple[Finding, ...] = ()
    """What the query did not see: records that were lost before they could be archived, damaged logs of ZooKeeper."""
    written: bool = False
    """The rows went to stdout as a file."""


def _text(report: SqlReport, look: TerminalStyle) -> str:
    if report.written:
        return ""
    table = look.table(report.columns, [["NULL" if cell is None else str(cell) for cell in row] for row in report.rows])
    more = ", and more: --limit shows them" if report.more else ""
    lines = [table, look.line(plural(len(report.rows), "row") + more)]
    return "\n".join([*lines, *finding_lines(report.findings, look, every=True)])


def _exit_code(report: SqlReport) -> int:
    severities = {finding.severity for finding in report.findings}
    return Damaged.exit_code if Severity.DAMAGE in severities else 0


@verb(SQL_QUERY, report=SqlReport, text=_text, exit_code=_exit_code)
def sql(run: Run, query: str) -> SqlReport:
    _refuse_contradictions(run)
    url = run[SQL_FROM]
    report = _query_source(run, query) if url is None else _query_dataset(run, url, query)
    if report.written:
        for finding in report.findings:
            run.console.warn(f"{finding.where}: {finding.what}")
    return report


def _query_source(run: Run, query: str) -> SqlReport:
    place = chosen_source(run)
    query_source = _QUERIES.get(kind_of(place).name)
    if query_source is None:
        raise UsageError("there is no backup to query", subject=place.source, remedy="take one first")
    return query_source(run, place, query)


def _refuse_contradictions(run: Run) -> None:
    form = run[SQL_OUTPUT]
    if form != "table" and run[JSON]:
        raise UsageError(f"--output {form} and --json both go to stdout", remedy="leave one out")
    if run[SQL_FROM] is not None and (run[SQL_AS] or run[SQL_DECODE] or run.settings.typed(SQL_BACKUP)):
        raise UsageError("--from names a dataset; --backup, --as and --decode are for backups", remedy="leave them out")
    if form == "parquet" and run.console.answers_a_person:
        raise UsageError("Parquet is not for a terminal", remedy="add > result.parquet")


def _query_kafka(run: Run, place: SourceRef, query: str) -> SqlReport:
    from logkeep.engine.spark.sql.query import Query  # noqa: PLC0415 - help must not load Spark
    from logkeep.kafka.scan.open_backup import open_backup  # noqa: PLC0415 - Arrow, slow to load

    engine = spark_engine(run)
    with ExitStack() as held:
        views = {
            name: held.enter_context(open_backup(place, backup, "sql", run.clock, run.token))
            for name, backup in {"": run[SQL_BACKUP], **_other_backups(run)}.items()
        }
        tables = _tables(views, decode=run[SQL_DECODE])
        sink = _sink(run)
        found = engine.query(Query(query, tables, _row_limit(run), sink))
    findings = tuple(_gaps(views.values()))
    return _report(run, place.source, str(views[""].entry.id), found, findings)


def _query_dataset(run: Run, url: str, query: str) -> SqlReport:
    from logkeep.engine.spark.sql.query import Query  # noqa: PLC0415 - as above
    from logkeep.engine.spark.sql.tables import QueryTable, UnitTable  # noqa: PLC0415
    from logkeep.kafka.importing.recognise import open_dataset  # noqa: PLC0415
    from logkeep.kafka.importing.table_rows import SCHEMA, dataset_rows, dataset_tables, missing_files  # noqa: PLC0415
    from logkeep.kafka.importing.writer_notes import with_lost_partitions  # noqa: PLC0415

    store = ReadOnlyStore(opened_store(run, url))
    reader = with_lost_partitions(open_dataset(store))
    if (root := local_root(url)) is not None:
        use_directories(run, root)
    tables: dict[str, QueryTable] = {
        name: UnitTable(SCHEMA, dataset_rows, units) for name, units in dataset_tables(reader).items()
    }
    found = spark_engine(run).query(Query(query, tables, _row_limit(run), _sink(run)))
    return _report(run, "", store.url, found, (*reader.findings, *missing_files(reader)))


def _query_zookeeper(run: Run, _place: SourceRef, query: str) -> SqlReport:
    from logkeep.cli.verbs.zookeeper.log import query_transactions  # noqa: PLC0415 - Arrow, slow to load
    from logkeep.cli.verbs.zookeeper.moment import opened_backup  # noqa: PLC0415

    if run[SQL_AS]:
        raise UsageError("--as is for Kafka; a ZooKeeper source has one table", remedy="leave --as out")
    with opened_backup(run, run[SQL_BACKUP]) as view:
        found, findings = query_transactions(run, view, query, _row_limit(run), _sink(run, spooled=True))
        return _report(run, chosen_source(run).source, view.name, found, findings)


_QUERIES: dict[str, Callable[[Run, SourceRef, str], SqlReport]] = {
    KAFKA.name: _query_kafka,
    ZOOKEEPER.name: _query_zookeeper,
}


def _report(run: Run, source: str, backup: str, found: "QueryResult", findings: tuple[Finding, ...]) -> SqlReport:
    cells = tuple(tuple(_cell(value) for value in row) for row in found.rows)
    written = run[SQL_OUTPUT] != "table"
    return SqlReport(
        source=source,
        backup=backup,
        columns=found.columns,
        rows=cells,
        more=found.more,
        findings=findings,
        written=written,
    )


def _other_backups(run: Run) -> dict[str, str]:
    """`NAME=ID`, each name once."""
    given: tuple[str, ...] = run[SQL_AS]
    found: dict[str, str] = {}
    for text in given:
        name, equals, backup = text.partition("=")
        if not (equals and name.isidentifier() and backup) or name in found:
            raise UsageError(f"--as {text} does not name another backup", remedy="write --as then=ID, each name once")
        found[name] = backup
    return found


def _tables(views: "Mapping[str, KafkaBackupView]", *, decode: bool) -> "dict[str, QueryTable]":
    from logkeep.engine.spark.sql.tables import ReadyTable  # noqa: PLC0415
    from logkeep.kafka.tables.catalogue import CATALOGUE  # noqa: PLC0415

    tables: dict[str, QueryTable] = {}
    for name, view in views.items():
        prefix = f"{name}." if name else ""
        options = {"includeHeaders": "true", "decode": str(decode).lower()}
        own: dict[str, QueryTable] = {
            topic.name: _records(view, {**options, "subscribe": topic.name}) for topic in view.record.topics
        }
        own["records"] = _records(view, options)
        own |= {
            table: ReadyTable("", lambda make=make, view=view: make(view))  # type: ignore[misc]
            for table, make in CATALOGUE.items()
        }
        ours = {"records", *CATALOGUE}
        own = {table: rows for table, rows in own.items() if table in ours or table.lower() not in ours}
        for table, rows in own.items():
            if prefix and (full := f"{prefix}{table}") in tables:
                raise UsageError(f"there is a topic {full}", remedy="choose another name for --as")
            tables[f"{prefix}{table}"] = rows
    return tables


def _records(view: "KafkaBackupView", options: Mapping[str, str]) -> "QueryTable":
    from logkeep.engine.spark.sql.tables import SourceTable  # noqa: PLC0415

    place = view.place
    named = {"repo": place.store.url, "source": place.source, "versionAsOf": str(view.entry.id)}
    named["failOnDataLoss"] = "false"  # the report names every gap
    return SourceTable("", "logkeep", {**options, **named})


def _gaps(views: "Iterable[KafkaBackupView]") -> Iterable[Finding]:
    for view in views:
        for gap in view.manifest.gaps:
            yield Finding(
                code="gap",
                severity=Severity.NOTE,
                where=f"backup {view.entry.id}, {gap.log}",
                what=f"offsets [{gap.start}, {gap.end}) were lost before they could be archived: {gap.reason}",
            )


def _sink(run: Run, *, spooled: bool = False) -> "ResultSink | None":
    form = run[SQL_OUTPUT]
    if form == "table":
        return None
    from logkeep.engine.spark.sql.result_files import SpooledSink, file_sink  # noqa: PLC0415 - as above

    sink = file_sink(form, run.console.data)
    return SpooledSink(sink) if spooled else sink


def _row_limit(run: Run) -> int | None:
    return run[SQL_LIMIT] or (_MOST_IN_A_TABLE if run[SQL_OUTPUT] == "table" else None)


def _cell(value: Any) -> Cell:
    """For people: bytes as text where they are text."""
    if value is None or isinstance(value, str | int | float):
        return value
    from logkeep.engine.spark.sql.result_files import plain  # noqa: PLC0415

    if not isinstance(value, bytes):
        shown = plain(value)
        return shown if isinstance(shown, str) else msgspec.json.encode(shown).decode()
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return f"0x{value.hex()}"
    return text if text.isprintable() else f"0x{value.hex()}"
