"""`logkeep kafka export`: a backup as a dataset."""

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.kafka.datasets.dataset_settings import wanted_export, wanted_logs
from logkeep.cli.verbs.kafka.datasets.declarations import EXPORT
from logkeep.cli.verbs.kafka.datasets.followed_export import followed_export
from logkeep.cli.verbs.kafka.datasets.report import (
    KafkaExportReport,
    dataset_code,
    dataset_lines,
    dataset_report,
    plan_report,
)
from logkeep.cli.wiring import chosen_engine, chosen_source, refuse_contradictions
from logkeep.config.options import ALLOW_GAPS, FOLLOW, ISOLATION
from logkeep.errors import UsageError
from logkeep.kafka.datasets.run import LABEL, DatasetExport, ExportDone
from logkeep.kafka.datasets.sources.export_sources import BackupSource
from logkeep.kafka.scan.open_backup import open_backup
from logkeep.kafka.scan.values import ScanIsolation
from logkeep.kinds import KAFKA, require_kind
from logkeep.model.work import EngineFor
from logkeep.repository.chain.commits import SourceRef

LATEST = "latest"


def _text(report: KafkaExportReport, look: TerminalStyle) -> str:
    first, *rest = dataset_lines(report)
    return "\n".join(map(look.prose, [f"backup {report.id} of {report.source}: {first}", *rest]))


@verb(EXPORT, report=KafkaExportReport, text=_text, exit_code=dataset_code)
def export(run: Run, backup: str) -> KafkaExportReport:
    refuse_contradictions(run)
    task = wanted_export(run)
    place = chosen_source(run)
    require_kind(place, KAFKA)
    if run[FOLLOW]:
        return _followed(run, task, place, backup)
    with open_backup(place, backup, "export", run.clock, run.token) as view:
        source = BackupSource.of(view, wanted_logs(run), ScanIsolation(run[ISOLATION]))
        if run.dry_run:
            report = plan_report(task.prepare(source), task.target.url, allow_gaps=run[ALLOW_GAPS])
        else:
            done = task.run(source, lambda size_bytes: chosen_engine(run, size_bytes, work=LABEL))
            report = dataset_report(done, task.target.url, allow_gaps=run[ALLOW_GAPS])
    return KafkaExportReport(**msgspec.structs.asdict(report), source=place.source, id=view.entry.id)


def _followed(run: Run, task: DatasetExport, place: SourceRef, backup: str) -> KafkaExportReport:
    """Each round exports what the newest backup has by then."""
    if backup != LATEST:
        raise UsageError("--follow exports the newest backup in every round", subject=backup, remedy="leave the id out")
    newest = list[int]()

    def one_round(engines: EngineFor) -> ExportDone:
        with open_backup(place, LATEST, "export", run.clock, run.token) as view:
            newest[:] = [view.entry.id]
            return task.run(BackupSource.of(view, wanted_logs(run), ScanIsolation(run[ISOLATION])), engines)

    report = followed_export(run, task, one_round)
    return KafkaExportReport(**msgspec.structs.asdict(report), source=place.source, id=newest[-1])
