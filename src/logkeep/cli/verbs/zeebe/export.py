"""`logkeep zeebe export`: a backup as a store that Zeebe restores from."""

from logkeep.checkpoint.zeebe.inventory import find_backup
from logkeep.checkpoint.zeebe.repo.export_run import StoreLayout, ZeebeExport
from logkeep.checkpoint.zeebe.repo.import_run import record_of
from logkeep.checkpoint.zeebe.verify import LABEL, expected_bytes, verify_backup
from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, plural, size
from logkeep.cli.verbs.zeebe.archive_declarations import EXPORT
from logkeep.cli.verbs.zeebe.verify import ZeebeVerifyReport, exit_code, verify_report, verify_text
from logkeep.cli.wiring import chosen_engine, chosen_source, opened_store, use_directories
from logkeep.config.options import ALL, ZEEBE_LAYOUT, ZEEBE_TARGET
from logkeep.errors import Damaged, UsageError
from logkeep.kinds import ZEEBE, require_kind
from logkeep.model.ids import BackupId
from logkeep.reports.backups import read_source
from logkeep.repository.backups.holds import reading
from logkeep.repository.chain.commits import read_chain
from logkeep.repository.chain.owner import this_process
from logkeep.store.access import create_place, local_root


class ZeebeExportReport(ZeebeVerifyReport, frozen=True, kw_only=True):
    source: str
    backup: int
    layout: str
    files: int
    """Written by this run."""
    written_bytes: int


def _text(report: ZeebeExportReport, look: TerminalStyle) -> str:
    amount = f"{plural(report.files, 'file')}, {size(report.written_bytes)}"
    first = f"backup {report.backup} of {report.source}: exported {amount} to {report.url}"
    return "\n".join([look.line(first), verify_text(report, look)])


@verb(EXPORT, report=ZeebeExportReport, text=_text, exit_code=lambda report: exit_code(report.findings))
def export(run: Run, backup: str) -> ZeebeExportReport:
    url = run[ZEEBE_TARGET]
    if url is None:
        raise UsageError(
            "no target is given", remedy="name the store to write: --to s3://bucket/prefix, or a directory"
        )
    place = chosen_source(run)
    require_kind(place, ZEEBE)
    entry = read_source(place, run.clock()).completed(backup)
    root = local_root(url)
    named = run[ZEEBE_LAYOUT]
    layout = StoreLayout(named) if named != "auto" else StoreLayout.FILES if root is not None else StoreLayout.S3
    create_place(url)
    if root is not None:
        use_directories(run, root, written=True)
    store = opened_store(run, url)
    with reading(place, BackupId(entry.id), this_process(run.token()), "export", run.token) as held:
        record = record_of(place, held)
        if record is None:
            raise Damaged("the backup has no record of Zeebe's files", subject=str(held.id))
        engine = chosen_engine(run, held.summary.stored_bytes, work="copy")
        done = ZeebeExport(place, read_chain(place), held, record).run(store, layout, engine)
    found = find_backup(store, str(record.checkpoint_id))
    result = verify_backup(store, found, chosen_engine(run, expected_bytes(found), work=LABEL))
    report = verify_report(store.url, result, every=run[ALL])
    return ZeebeExportReport(
        **{name: getattr(report, name) for name in report.__struct_fields__},
        source=place.source,
        backup=entry.id,
        layout=layout,
        files=done.files,
        written_bytes=done.size_bytes,
    )
