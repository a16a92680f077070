"""`logkeep zookeeper export` and `import`: copy backups between a repository and bundles."""

from datetime import datetime
from pathlib import Path

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, plural, size
from logkeep.cli.verbs.next_steps import after_zookeeper_backup
from logkeep.cli.verbs.restore_text import finding_lines
from logkeep.cli.verbs.zookeeper.backup_report import FIRST_SOURCE, ZooKeeperBackupReport, backup_text, done_report
from logkeep.cli.verbs.zookeeper.declarations import EXPORT, IMPORT
from logkeep.cli.wiring import WarmEngines, chosen_source, use_directories, written_source
from logkeep.config.options import (
    BACKUP_ID,
    BUNDLE_ID,
    LEASE_TTL,
    MEMBER,
    NEW_HISTORY,
    TAG,
    TO_DIR,
    ZK_COMPRESSION,
)
from logkeep.errors import UsageError
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId, backup_id, next_id
from logkeep.model.segments import Codec
from logkeep.reports.backups import read_source
from logkeep.repository.backups.holds import reading
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.owner import this_process
from logkeep.zookeeper.backup.findings import exit_code
from logkeep.zookeeper.bundle.layout import checked_id
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.bundle.writer import new_bundle
from logkeep.zookeeper.convert import ExportExtras, export_backup, import_bundle
from logkeep.zookeeper.model.config_files import ConfigFile
from logkeep.zookeeper.model.sink import MemberText
from logkeep.zookeeper.repo.sink import archiving
from logkeep.zookeeper.repo.view import ArchiveView, view_of


class ExportReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    backup: int
    member: str
    bundle: str
    """Its directory."""
    snapshots: int
    logs: int
    bytes: int
    """Uncompressed; the bundle may be compressed."""
    stored_bytes: int
    backup_zxid: str
    findings: tuple[Finding, ...]
    """Of the backup that was exported."""


def _export_text(report: ExportReport, look: TerminalStyle) -> str:
    amount = f"{plural(report.snapshots, 'snapshot')}, {plural(report.logs, 'log')}, {size(report.bytes)}"
    lines = [
        look.line(f"backup {report.backup}, member {report.member}: {amount}, up to {report.backup_zxid}"),
        look.line(f"bundle: {report.bundle}"),
    ]
    return "\n".join([*lines, *finding_lines(report.findings, look, every=False)])


@verb(EXPORT, report=ExportReport, text=_export_text, exit_code=lambda report: exit_code(report.findings))
def export(run: Run, backup: str) -> ExportReport:
    directory = run[TO_DIR]
    if directory is None:
        raise UsageError("no directory is given", remedy="give the directory to create the bundle in: --to DIR")
    place = chosen_source(run)
    entry = read_source(place, run.clock()).completed(backup)
    name = checked_id(run[BUNDLE_ID] or bundle_name(entry.id))
    codec = Codec(run[ZK_COMPRESSION])
    with reading(place, BackupId(entry.id), this_process(run.token()), "export", run.token) as held:
        view = view_of(place, held)
        with new_bundle(directory.absolute(), name, clock=run.clock, tokens=run.token, codec=codec) as sink:
            use_directories(run, directory, written=True)
            gathered = export_backup(view, sink, WarmEngines(run), run[MEMBER], beside_of(view))
    stored = [*(placed.stored for placed in gathered.snapshots), *(placed.stored for placed in gathered.logs)]
    return ExportReport(
        source=place.source,
        backup=entry.id,
        member=gathered.members[0].name,
        bundle=str(sink.path),
        snapshots=len(gathered.snapshots),
        logs=len(gathered.logs),
        bytes=sum(one.plain_bytes for one in stored),
        stored_bytes=sum(one.size_bytes for one in stored),
        backup_zxid=hex_zxid(gathered.backup_zxid),
        findings=tuple(gathered.findings),
    )


def bundle_name(number: int) -> str:
    """`backup-20261116-091500` where the id is a time."""
    text = str(number)
    return f"backup-{text[:8]}-{text[8:]}" if len(text) == 14 else f"backup-{text}"


def beside_of(view: ArchiveView) -> ExportExtras:
    record = view.record
    return ExportExtras(
        findings=view.manifest.findings,
        schemes=record.schemes,
        texts={m.name: MemberText(m.mntr, m.stat, m.conf) for m in record.members},
        config=tuple(ConfigFile(c.name, c.content, c.redacted) for c in record.config),
        left_out=record.left_out,
    )


@verb(
    IMPORT,
    next_step=after_zookeeper_backup,
    report=ZooKeeperBackupReport,
    text=backup_text,
    exit_code=lambda report: report.exit_code,
)
def import_(run: Run, bundle: str) -> ZooKeeperBackupReport:
    view, place = BundleView(Path(bundle).expanduser().absolute()), written_source(run, FIRST_SOURCE)
    use_directories(run, Path(bundle).expanduser())
    with archiving(
        place,
        clock=run.clock,
        tokens=run.token,
        codec=Codec(run[ZK_COMPRESSION]),
        wanted=_id_from_bundle(run, view, place),
        tags=(*run[TAG], view.name),
        lease_ttl=run[LEASE_TTL],
    ) as sink:
        engines = WarmEngines(run)
        done = import_bundle(view, sink, engines, new_history=run[NEW_HISTORY], member_name=run[MEMBER])
    return done_report(place, done, sink.entry)


def _id_from_bundle(run: Run, view: BundleView, place: SourceRef) -> BackupId | None:
    """The id from the bundle's time; None, for the present time, where later ids exist."""
    if (named := run[BACKUP_ID]) is not None:
        return backup_id(named)
    try:
        taken = datetime.fromisoformat(view.info.backup_timestamp)
    except ValueError:
        return None
    if taken.tzinfo is None:
        return None
    wanted = next_id(taken, 0)
    return wanted if wanted > read_chain(place).last_id else None
