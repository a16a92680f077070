"""`logkeep drill`: a whole restore to a scratch target, its proof, and how long it took."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import click

from logkeep.cli.frame.execute import CommandOutcome, Run
from logkeep.cli.frame.metrics import MetricSample, sample
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, duration, plural, size
from logkeep.cli.verbs.restore_text import finding_lines
from logkeep.cli.wiring import STORE_EXITS, chosen_source, refuse_contradictions
from logkeep.config.option import Option
from logkeep.config.options import (
    EMBEDDED,
    ENGINE_OPTIONS,
    KAFKA_TARGET,
    LIMIT_DOWNLOAD,
    LIMIT_PRODUCE,
    OFFSETS,
    PROGRESS,
    RECEIPT_OPTIONS,
    REPLICATION_FACTOR,
    TO_TIME,
    TO_ZXID,
    TOPIC_SELECTION,
    ZK_MOMENT,
    Options,
)
from logkeep.config.settings import SettingPlace
from logkeep.errors import UsageError
from logkeep.kinds import APPLICATION, KAFKA, ZEEBE, ZOOKEEPER, SourceKind, kind_of
from logkeep.reports.backups import read_source
from logkeep.reports.drill import DrillReport
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry
from logkeep.repository.restores import RestoreVerdict

_OF_KAFKA: Options = (*KAFKA_TARGET, *TOPIC_SELECTION, OFFSETS, REPLICATION_FACTOR, LIMIT_PRODUCE)


def _text(report: DrillReport, look: TerminalStyle) -> str:
    good = report.verdict == RestoreVerdict.PROVEN
    head = f"{look.state('OK' if good else 'FAIL')}  drill of backup {report.backup}: {report.verdict}"
    took = duration(timedelta(seconds=report.seconds))
    lines = [head, look.prose(f"{_amount(report)} · restored and compared in {took} ({report.where})", indent=2)]
    return "\n".join([*lines, *finding_lines(report.findings, look, every=False)])


def _amount(report: DrillReport) -> str:
    if report.tree is not None:
        replayed = f"{plural(report.tree.transactions, 'transaction')} replayed"
        return f"{plural(report.tree.nodes_compared, 'node')} at {report.tree.zxid} ({report.tree.proof}) · {replayed}"
    if report.application is not None:
        found = report.application
        opened = f"{plural(found.partitions, 'partition')} opened, the state of {found.partitions_proven} compared"
        return f"{opened} · {plural(found.positions, 'position')} · {size(report.bytes)}"
    if report.zeebe is not None:
        cut = f"{plural(report.zeebe.commands_proven, 'command')} of other partitions proven"
        return f"{plural(report.zeebe.partitions, 'partition')} · {plural(report.zeebe.records, 'record')} · {cut}"
    return f"{plural(report.topics, 'topic')} · {plural(report.records, 'record')} · {size(report.bytes)}"


def _metrics(outcome: CommandOutcome[DrillReport]) -> Iterator[MetricSample]:
    report = outcome.report
    source = report.source if report else outcome.source
    good = report is not None and report.verdict == RestoreVerdict.PROVEN
    yield sample("logkeep_drill_success", 1 if good else 0, source=source)
    if report is not None and good:
        yield sample("logkeep_drill_recovery_seconds", report.seconds, source=source)
        yield sample("logkeep_drill_last_success_timestamp_seconds", outcome.ended.timestamp(), source=source)


_OPTIONS = (
    *RECEIPT_OPTIONS, *KAFKA_TARGET, EMBEDDED, *ZK_MOMENT, *TOPIC_SELECTION, OFFSETS, REPLICATION_FACTOR,
    LIMIT_PRODUCE, LIMIT_DOWNLOAD, *ENGINE_OPTIONS, PROGRESS,
)  # fmt: skip


@verb(
    report=DrillReport,
    text=_text,
    options=_OPTIONS,
    arguments=(click.Argument(["backup"], metavar="[ID]", default="latest"),),
    exits=(10, 12, 20, 31, *STORE_EXITS),
    exit_code=lambda report: 0 if report.verdict == RestoreVerdict.PROVEN else 12,
    metrics=_metrics,
    examples=("logkeep drill latest --embedded", "logkeep drill latest --bootstrap-servers staging:9092"),
)
def drill(run: Run, backup: str) -> DrillReport:
    """Restore a backup to a scratch target, prove it, clean up, and report the recovery time.

    With --embedded a temporary broker is started on this machine; otherwise scratch topics are created in the given
    cluster and deleted again. Groups are not restored. The receipt is kept: `list` and `status` show it.

    A backup of ZooKeeper is restored into a temporary directory, at its end or at --to-zxid or --to-time. A server of
    its version is started there, and its whole tree is compared with the replayed one.

    A backup of an application is restored into a temporary directory and opened there. The state of every partition is
    compared with the one that was backed up. A backup of Zeebe is exported into a temporary store and verified there.
    """
    refuse_contradictions(run)
    place = chosen_source(run)
    entry = read_source(place, run.clock()).completed(backup)
    found = _DRILLS.get(kind_of(place, strict=True).name, _DRILLS[KAFKA.name])
    _refuse_typed(run, found.foreign, found.kind.title)
    return found.drill(run, place, entry)


def _drill_kafka(run: Run, place: SourceRef, entry: BackupEntry) -> DrillReport:
    from logkeep.cli.verbs.kafka.drill import drill_kafka  # noqa: PLC0415 - only this kind needs it

    return drill_kafka(run, place, entry)


def _drill_zookeeper(run: Run, place: SourceRef, entry: BackupEntry) -> DrillReport:
    from logkeep.cli.verbs.zookeeper.drill import drill_zookeeper  # noqa: PLC0415 - only this kind needs it

    return drill_zookeeper(run, place, entry)


def _drill_application(run: Run, place: SourceRef, entry: BackupEntry) -> DrillReport:
    from logkeep.cli.verbs.application.drill import drill_application  # noqa: PLC0415 - only this kind needs it

    return drill_application(run, place, entry)


def _drill_zeebe(run: Run, place: SourceRef, entry: BackupEntry) -> DrillReport:
    from logkeep.cli.verbs.zeebe.drill import drill_zeebe  # noqa: PLC0415 - only this kind needs it

    return drill_zeebe(run, place, entry)


@dataclass(frozen=True)
class _KindDrill:
    kind: SourceKind
    drill: Callable[[Run, SourceRef, BackupEntry], DrillReport]
    foreign: Options
    """Options that mean nothing for this kind."""


_DRILLS = {
    KAFKA.name: _KindDrill(KAFKA, _drill_kafka, (TO_ZXID, TO_TIME)),
    ZOOKEEPER.name: _KindDrill(ZOOKEEPER, _drill_zookeeper, _OF_KAFKA),
    APPLICATION.name: _KindDrill(APPLICATION, _drill_application, (*_OF_KAFKA, EMBEDDED, *ZK_MOMENT)),
    ZEEBE.name: _KindDrill(ZEEBE, _drill_zeebe, (*_OF_KAFKA, EMBEDDED, *ZK_MOMENT)),
}


def _refuse_typed(run: Run, options: Sequence[Option[Any]], kind: str) -> None:
    typed = next((o for o in options if run.settings.origin(o).place is SettingPlace.FLAG), None)
    if typed is not None:
        raise UsageError(f"{typed.spellings()[0].flag} has no effect on a backup of {kind}", remedy="leave it out")
