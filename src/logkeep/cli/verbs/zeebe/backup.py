"""`logkeep zeebe backup`: a backup by a running Zeebe, followed to its end and verified."""

import time

from logkeep.checkpoint.zeebe.inventory import find_backup, read_inventory
from logkeep.checkpoint.zeebe.take.management import Management
from logkeep.checkpoint.zeebe.take.run import Take, TakeLimits, Waiting
from logkeep.checkpoint.zeebe.verify import verify_backup
from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.zeebe.archive_declarations import BACKUP
from logkeep.cli.verbs.zeebe.verify import ZeebeVerifyReport, exit_code, verify_report, verify_text
from logkeep.cli.verbs.zeebe.zeebe_store import opened_zeebe_store
from logkeep.config.options import ALL, BACKUP_ID, ZEEBE_MANAGEMENT, ZEEBE_TIMEOUT
from logkeep.engine.inline import InlineEngine
from logkeep.engine.stop import SignalStop
from logkeep.errors import BackupFailed, UnknownBackup, UsageError

_OTHER_STORE = "give the store that Zeebe's own configuration names; every broker must use the same"


class ZeebeBackupReport(ZeebeVerifyReport, frozen=True, kw_only=True):
    management: str
    waited_ms: int
    """From the request until Zeebe had completed it."""


def _text(report: ZeebeBackupReport, look: TerminalStyle) -> str:
    taken = f"Zeebe completed backup {report.id} after {report.waited_ms / 1000:.1f} s"
    return "\n".join([look.line(taken), verify_text(report, look)])


@verb(BACKUP, report=ZeebeBackupReport, text=_text, exit_code=lambda report: exit_code(report.findings))
def backup(run: Run) -> ZeebeBackupReport:
    url, store = run[ZEEBE_MANAGEMENT], opened_zeebe_store(run)
    if url is None:
        raise UsageError("name Zeebe's management port", remedy="give --management, or set zeebe.management")
    management = Management(url)
    with SignalStop() as stop:

        def wait(seconds: float) -> None:
            stop.wait(seconds)
            stop.check()

        take = Take(
            management,
            lambda: {each.checkpoint_id for each in read_inventory(store)},
            Waiting(run.clock, time.monotonic, wait),
            run.progress(),
        )
        taken = take.run(run[BACKUP_ID], TakeLimits(run[ZEEBE_TIMEOUT].total_seconds()))
    try:
        found = find_backup(store, str(taken.number))
    except UnknownBackup as error:
        what = f"Zeebe reports backup {taken.number} as completed, and this store has nothing of it"
        raise BackupFailed(what, subject=store.url, remedy=_OTHER_STORE) from error
    result = verify_backup(store, found, InlineEngine(sink=run.progress()))
    report = verify_report(store.url, result, every=run[ALL])
    return ZeebeBackupReport(
        **{name: getattr(report, name) for name in report.__struct_fields__},
        management=management.url,
        waited_ms=int(taken.waited_s * 1000),
    )
