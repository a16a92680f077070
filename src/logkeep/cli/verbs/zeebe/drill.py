"""`logkeep drill` of a backup of Zeebe: exported into a temporary store, and verified there."""

import tempfile
from pathlib import Path

import msgspec

from logkeep.checkpoint.zeebe.inventory import find_backup
from logkeep.checkpoint.zeebe.repo.export_run import StoreLayout, ZeebeExport
from logkeep.checkpoint.zeebe.repo.import_run import record_of
from logkeep.checkpoint.zeebe.repo.record import ZeebeRecord
from logkeep.checkpoint.zeebe.verify import LABEL, VerifiedBackup, expected_bytes, verify_backup
from logkeep.cli.frame.execute import Run
from logkeep.cli.verbs.zeebe.verify import exit_code
from logkeep.cli.wiring import chosen_engine, note_failed, restores_place, use_directories
from logkeep.errors import Damaged, LogkeepError
from logkeep.kinds import ZEEBE
from logkeep.model.ids import BackupId
from logkeep.reports.drill import SCRATCH, DrilledZeebe, DrillReport, drill_report
from logkeep.repository.backups.holds import reading
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import BackupEntry
from logkeep.repository.chain.owner import this_process
from logkeep.repository.restores import NewRestore, ReceiptDocument, RestoreTargetRef, RestoreVerdict
from logkeep.repository.restores.stored import StoredRestore
from logkeep.store.local.store import LocalStore

_WHERE = "temporary store"


def drill_zeebe(run: Run, place: SourceRef, entry: BackupEntry) -> DrillReport:
    state = restores_place(run, place, create=True)
    with (
        tempfile.TemporaryDirectory(prefix=SCRATCH) as made,
        reading(place, BackupId(entry.id), this_process(run.token()), "drill", run.token) as held,
    ):
        record = record_of(place, held)
        if record is None:
            raise Damaged("the backup has no record of Zeebe's files", subject=str(held.id))
        new = NewRestore(
            backup=entry.id,
            kind=ZEEBE.name,
            target=RestoreTargetRef(cluster_id="", name=_WHERE),
            body=msgspec.json.encode({"checkpoint": record.checkpoint_id}),
            drill=True,
        )
        stored = StoredRestore.begin(state, new, run.clock, run.token)
        try:
            size_bytes, found = _drilled(run, place, held, record, Path(made).resolve() / "store")
        except LogkeepError as error:
            note_failed(run, stored, error)
            raise
        damaged = exit_code(found.findings) == 10
        verdict = RestoreVerdict.FAILED if damaged else RestoreVerdict.PROVEN
        receipt = stored.ended(verdict, found.findings, {"cut": _cut(found)})
    return _report(place.source, size_bytes, found, receipt)


def _drilled(
    run: Run, place: SourceRef, entry: BackupEntry, record: ZeebeRecord, root: Path
) -> tuple[int, VerifiedBackup]:
    store = LocalStore(root)
    store.create()
    use_directories(run, root, written=True)
    engine = chosen_engine(run, entry.summary.stored_bytes, work="copy")
    written = ZeebeExport(place, read_chain(place), entry, record).run(store, StoreLayout.FILES, engine)
    found = find_backup(store, str(record.checkpoint_id))
    return written.size_bytes, verify_backup(store, found, chosen_engine(run, expected_bytes(found), work=LABEL))


def _cut(found: VerifiedBackup) -> str:
    cut = found.cut
    unchecked = sum(each.commands for each in cut.unchecked)
    return f"{cut.proven} proven, {cut.orphans} orphans, {cut.inconclusive} inconclusive, {unchecked} unchecked"


def _report(source: str, size_bytes: int, found: VerifiedBackup, receipt: ReceiptDocument) -> DrillReport:
    return drill_report(
        source,
        receipt,
        _WHERE,
        size_bytes,
        zeebe=DrilledZeebe(
            partitions=found.backup.partitions,
            records=sum(segment.records for copy in found.copies for segment in copy.segments),
            commands_proven=found.cut.proven,
            orphans=found.cut.orphans,
        ),
    )
