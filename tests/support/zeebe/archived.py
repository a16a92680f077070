"""Backups of Zeebe, imported into a repository and exported again, as the commands do it."""

from datetime import timedelta

from logkeep.checkpoint.zeebe.inventory import find_backup
from logkeep.checkpoint.zeebe.repo.export_run import StoreLayout, ZeebeExport, ZeebeExported
from logkeep.checkpoint.zeebe.repo.import_run import ZeebeImport, ZeebeImported, ZeebeImportOptions, record_of
from logkeep.checkpoint.zeebe.verify import verify_backup
from logkeep.engine.inline import InlineEngine
from logkeep.model.findings import Severity
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.store.base import Store

_TTL = timedelta(minutes=5)


def imported(place: SourceRef, store: Store, number: int, wanted: int | None = None) -> ZeebeImported:
    task = ZeebeImport(place, store, find_backup(store, str(number)), utc_now, random_token)
    return task.run(ZeebeImportOptions(number, wanted, (), _TTL), InlineEngine())


def exported(place: SourceRef, number: int, store: Store, layout: StoreLayout) -> ZeebeExported:
    folded = read_chain(place)
    entry = folded.entry(number)
    assert entry is not None
    record = record_of(place, entry)
    assert record is not None
    return ZeebeExport(place, folded, entry, record).run(store, layout, InlineEngine())


def is_good(store: Store, number: int) -> bool:
    found = verify_backup(store, find_backup(store, str(number)), InlineEngine())
    return not [each for each in found.findings if each.severity is not Severity.NOTE]
