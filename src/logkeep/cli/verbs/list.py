"""`logkeep list`: which backups there are."""

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.backup_rows import BackupRow, backup_row, backup_table, health_of, seen
from logkeep.cli.verbs.last_restore import last_of_each
from logkeep.cli.wiring import STORE_EXITS, chosen_sources
from logkeep.config.options import REPO, SOURCE, STATE_DIR
from logkeep.errors import Damaged
from logkeep.repository.backups.source import SourceView
from logkeep.repository.chain.commits import SourceRef


class ListReport(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    sources: tuple[str, ...]
    backups: tuple[BackupRow, ...]
    warnings: tuple[str, ...]


def _list_text(report: ListReport, look: TerminalStyle) -> str:
    if not report.backups:
        return look.text(f"no backups in {report.url}")
    table = backup_table(report.backups, look)
    return "\n".join([table, *(look.line(f"WARN  {w}") for w in report.warnings)])


@verb(
    report=ListReport,
    text=_list_text,
    options=(REPO, SOURCE, STATE_DIR),
    exits=(2, 10, *STORE_EXITS),
    exit_code=lambda report: 2 if report.warnings else 0,
    examples=("logkeep list -r s3://bucket/logkeep", "logkeep list --json | jq '.backups[-1].id'"),
)
def list_backups(run: Run) -> ListReport:
    """List all backups, oldest first.

    Reads the chain of each source and the names of what was verified and restored: no data, no manifests, no Spark.
    """
    places = list(chosen_sources(run))
    views, trouble = list[tuple[SourceRef, SourceView]](), list[str]()
    for place in places:
        try:
            views.append((place, seen(place, run.clock())))
        except Damaged as damage:
            if len(places) == 1:
                raise
            trouble.append(f"source {place.source}: {damage}; {damage.remedy}")  # must not hide the others
    rows = [row for place, view in views for row in _rows(run, place, view)]
    return ListReport(
        url=places[0].store.url if places else run.repo(),
        sources=tuple(place.source for place in places),
        backups=tuple(rows),
        warnings=(*trouble, *(w for _, view in views for w in view.warnings)),
    )


def _rows(run: Run, place: SourceRef, view: SourceView) -> list[BackupRow]:
    health, restored = health_of(place), last_of_each(run, place)
    rows = (backup_row(place.source, state, health) for state in view.states())
    return [msgspec.structs.replace(row, last_restore=restored.get(row.id)) for row in rows]
