"""The next step after verbs that write. The frame shows it to people, not to scripts."""

from typing import TYPE_CHECKING, Any, Protocol

from logkeep.cli.frame.execute import Run
from logkeep.cli.terminal.next_step import NextStep
from logkeep.config.option import Option
from logkeep.config.options import BOOTSTRAP_SERVERS, CONFIG, REPO, SOURCE, STATE_DIR, ZK_DATA_DIRS, ZK_HOSTS
from logkeep.kinds import kind_named
from logkeep.model.redaction import redact
from logkeep.model.shell_words import shell_line
from logkeep.repository.backups.verdicts import DAMAGED, GOOD

if TYPE_CHECKING:
    from logkeep.cli.verbs.application.backup import ApplicationBackupReport
    from logkeep.cli.verbs.application.restore_report import ApplicationRestoreReport
    from logkeep.cli.verbs.kafka.backup_report import KafkaBackupReport
    from logkeep.cli.verbs.kafka.copied_report import KafkaCopied
    from logkeep.cli.verbs.repository.init import InitReport
    from logkeep.cli.verbs.zeebe.import_ import ZeebeImportReport
    from logkeep.cli.verbs.zookeeper.backup_report import ZooKeeperBackupReport
    from logkeep.reports.verification import VerifyReport


class RestoreReport(Protocol):
    """The report of a verb that restores something."""

    @property
    def restore(self) -> int | None:
        """The id of its receipt."""


def command(run: Run, *words: object) -> str:
    """A command of `logkeep` on the same repository: it repeats the flags by which this run found it."""
    flags: list[object] = []
    named: tuple[tuple[Option[Any], str], ...] = ((REPO, "-r"), (CONFIG, "--config"), (SOURCE, "--source"))
    for option, flag in named:
        if run.settings.typed(option):
            flags += [flag, redact(str(run.settings[option]))]
    return shell_line("logkeep", *words, *flags)


def after_init(run: Run, _report: "InitReport") -> NextStep:
    """Addresses that are set already, by a variable or a file, are not repeated."""
    kafka = command(run, "kafka", "backup", *_unset(run, (BOOTSTRAP_SERVERS, "localhost:9092")))
    places = ((ZK_DATA_DIRS, "/var/lib/zookeeper"), (ZK_HOSTS, "localhost:2181"))
    zookeeper = command(run, "zookeeper", "backup", *_unset(run, *places))
    return NextStep("take a first backup, of Kafka or of ZooKeeper", (kafka, zookeeper))


def _unset(run: Run, *flags: tuple[Option[Any], str]) -> list[str]:
    return [word for option, example in flags if not run.settings[option] for word in (f"--{option.name}", example)]


def after_kafka_backup(run: Run, report: "KafkaBackupReport") -> NextStep | None:
    return _verify(run, report.id, "records") if report.follow is None else None


def after_kafka_copy(run: Run, report: "KafkaCopied") -> NextStep | None:
    """A salvage or an import."""
    return _verify(run, report.id, "records")


def after_zookeeper_backup(run: Run, report: "ZooKeeperBackupReport") -> NextStep | None:
    return _verify(run, report.id, "replay") if report.follow is None else None


def after_application_backup(run: Run, report: "ApplicationBackupReport") -> NextStep | None:
    if report.state == "ongoing":
        return NextStep("see whether it is completed", (command(run, "app", "status", report.id),))
    return _verify(run, report.id, "cut") if report.state == "completed" else None


def after_application_restore(_run: Run, report: "ApplicationRestoreReport") -> NextStep | None:
    if report.dry_run:
        return None
    where = ("--bootstrap-servers", report.cluster, "--data", "DIR") if report.cluster else ("--data", report.directory)
    return NextStep("start the application", (shell_line("python", "PROGRAM", "run", *where),))


def after_zeebe_import(run: Run, report: "ZeebeImportReport") -> NextStep | None:
    return _verify(run, report.id, "data")


def _verify(run: Run, backup: int | None, level: str) -> NextStep | None:
    if backup is None:
        return None
    return NextStep("check that it can be read", (command(run, "verify", backup, "--level", level),))


def after_verify(run: Run, report: "VerifyReport") -> NextStep | None:
    """A drill proves the restore itself. Of a damaged backup, the report says what to do."""
    if report.verdict != GOOD or report.health == DAMAGED:
        return None
    line = command(run, "drill", report.id, *kind_named(report.kind).drill_flags)
    return NextStep("prove that it can be restored", (line,))


def after_restore(run: Run, report: "RestoreReport", what: str | None = None) -> NextStep | None:
    """Of everything that stores a receipt."""
    if report.restore is None:
        return None
    where = ("--state-dir", run[STATE_DIR]) if run.settings.typed(STATE_DIR) else ()
    return NextStep(
        what or "see what was restored and proven", (command(run, "receipts", "show", report.restore, *where),)
    )
