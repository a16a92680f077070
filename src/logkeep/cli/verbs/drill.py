"""`logkeep drill`: a whole restore to where it does no harm, its proof, and how long it took."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from logkeep.cli.frame.execute import CommandOutcome, Run
from logkeep.cli.frame.metrics import MetricSample, sample
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, duration, plural, size
from logkeep.cli.verbs.backup_rows import seen
from logkeep.cli.verbs.kafka.backup import client_settings
from logkeep.cli.verbs.restore_text import finding_lines
from logkeep.cli.wiring import STORE_EXITS, chosen_engine, chosen_source, refuse_contradictions, restores_place
from logkeep.config.option import Option
from logkeep.config.options import (
    BOOTSTRAP_SERVERS,
    COMMAND_CONFIG,
    EMBEDDED,
    ENGINE,
    EXCLUDE,
    LIMIT_DOWNLOAD,
    LIMIT_PRODUCE,
    MASTER,
    OFFSETS,
    PARALLEL,
    PROGRESS,
    REPLICATION_FACTOR,
    REPO,
    SOURCE,
    SPARK_CONF,
    STATE_DIR,
    TO_TIME,
    TO_ZXID,
    TOPICS,
)
from logkeep.config.settings import SettingPlace
from logkeep.errors import UsageError
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.properties import settings_from
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.restore.facts.backup_view import view_backup
from logkeep.kafka.restore.facts.units import Offsets
from logkeep.kafka.restore.plan.plan import PlanOptions
from logkeep.kafka.restore.plan.selection import RestoreSelection
from logkeep.kafka.restore.prepare import ClockAndTokens, KafkaRestoreOptions, prepare
from logkeep.kafka.restore.run import KafkaRestore, KafkaRestoreDone
from logkeep.kafka.restore.topics import abort_topics
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId
from logkeep.repository.backups.holds import reading
from logkeep.repository.backups.source import read_facts
from logkeep.repository.chain.owner import is_dead, same_process, this_process
from logkeep.repository.restores import RestoreState, RestoreVerdict, list_restores, topic_ids

_OF_KAFKA: tuple[Option[Any], ...] = (
    BOOTSTRAP_SERVERS, COMMAND_CONFIG, TOPICS, EXCLUDE, OFFSETS, REPLICATION_FACTOR, LIMIT_PRODUCE,
)  # fmt: skip
SCRATCH = "logkeep-drill-"
"""How the names of scratch topics and directories begin."""


class DrilledTree(msgspec.Struct, frozen=True, kw_only=True):
    zxid: str
    """The transaction that the tree stands at."""
    proof: str
    nodes: int
    nodes_compared: int
    """That the server had: data, ACL and every field of the stat."""
    transactions: int
    digests_compared: int


class DrillReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    backup: int
    restore: int
    """Under which `logkeep receipts show` has every partition."""
    where: str
    """An embedded server, or the id of the cluster."""
    verdict: str
    topics: int
    """Of a backup of Kafka, as the next two; 0 for others."""
    partitions: int
    records: int
    bytes: int
    seconds: float
    """The recovery time that was reached: all read, written, read back from the server and compared."""
    findings: tuple[Finding, ...]
    tree: DrilledTree | None = None
    """Of a backup of ZooKeeper."""


def _text(report: DrillReport, look: TerminalStyle) -> str:
    good = report.verdict == RestoreVerdict.PROVEN
    head = f"{look.state('OK' if good else 'FAIL')}  drill of backup {report.backup}: {report.verdict}"
    took = duration(timedelta(seconds=report.seconds))
    amount = f"{plural(report.topics, 'topic')} · {plural(report.records, 'record')} · {size(report.bytes)}"
    if report.tree is not None:
        replayed = f"{plural(report.tree.transactions, 'transaction')} replayed"
        amount = (
            f"{plural(report.tree.nodes_compared, 'node')} at {report.tree.zxid} ({report.tree.proof}) · {replayed}"
        )
    lines = [head, look.prose(f"{amount} · restored and compared in {took} ({report.where})", indent=2)]
    return "\n".join([*lines, *finding_lines(report.findings, look, every=False)])


def _code(report: DrillReport) -> int:
    return 0 if report.verdict == RestoreVerdict.PROVEN else 12


def _metrics(outcome: CommandOutcome[DrillReport]) -> Iterator[MetricSample]:
    report = outcome.report
    source = report.source if report else outcome.source
    good = report is not None and report.verdict == RestoreVerdict.PROVEN
    yield sample("logkeep_drill_success", 1 if good else 0, source=source)
    if report is not None and good:
        yield sample("logkeep_drill_recovery_seconds", report.seconds, source=source)
        yield sample("logkeep_drill_last_success_timestamp_seconds", outcome.ended.timestamp(), source=source)


@verb(
    report=DrillReport,
    text=_text,
    options=(
        REPO,
        SOURCE,
        STATE_DIR,
        BOOTSTRAP_SERVERS,
        COMMAND_CONFIG,
        EMBEDDED,
        TO_ZXID,
        TO_TIME,
        TOPICS,
        EXCLUDE,
        OFFSETS,
        REPLICATION_FACTOR,
        LIMIT_PRODUCE,
        LIMIT_DOWNLOAD,
        ENGINE,
        MASTER,
        PARALLEL,
        SPARK_CONF,
        PROGRESS,
    ),
    arguments=(click.Argument(["backup"], metavar="[ID]", default="latest"),),
    exits=(10, 12, 31, *STORE_EXITS),
    exit_code=_code,
    metrics=_metrics,
    examples=("logkeep drill latest --embedded", "logkeep drill latest --bootstrap-servers staging:9092"),
)
def drill(run: Run, backup: str) -> DrillReport:
    """Restore a backup to where it does no harm, prove it, clean up, and tell how long that took.

    With --embedded a broker is started on this machine and thrown away afterwards; else scratch topics are made in
    the named cluster and deleted again. Groups are left alone. The receipt stays: `list` and `status` show it.

    A backup of ZooKeeper is restored into a directory that is thrown away, at its end or at --to-zxid or --to-time; a
    server of its version is started on it, and its whole tree is compared with the replayed one.
    """
    refuse_contradictions(run)
    place = chosen_source(run)
    entry = seen(place, run.clock()).completed(backup)
    facts = read_facts(place)
    if facts is not None and facts.kind == "zookeeper":
        _refuse_typed(run, _OF_KAFKA, "ZooKeeper")
        from logkeep.cli.verbs.zookeeper.drill import drill_zookeeper  # noqa: PLC0415 - only this kind needs it

        return drill_zookeeper(run, place, entry)
    _refuse_typed(run, (TO_ZXID, TO_TIME), "Kafka")
    with ExitStack() as stack:
        settings, alone = _where(run, stack)
        held = stack.enter_context(reading(place, BackupId(entry.id), this_process(run.token()), "drill", run.token))
        view, wish = view_backup(place, held), _wish(run, alone=alone)
        chance = ClockAndTokens(run.clock, run.token)
        engines = partial(chosen_engine, run)
        # Not looked for beforehand: a lost object is what a drill is to find out, and to leave a receipt of.
        prepared = prepare(view, wish, settings, engines, chance, presence=False)
        if prepared.refusals:
            raise prepared.refusals[0]
        task = KafkaRestore(place, restores_place(run, place, create=True), settings, run.clock, run.token)
        engine = engines(prepared.plan.bytes)
        if not alone:
            stack.callback(_sweep, task, prepared.plan.cluster_id)
            _sweep(task, prepared.plan.cluster_id)
        done = task.begin(prepared, wish, engine, {}, drill=True)
        left = () if alone else _clean_up(task, done)
    return _report(place.source, done, left, alone=alone)


def _refuse_typed(run: Run, options: Sequence[Option[Any]], kind: str) -> None:
    typed = next((o for o in options if run.settings.origin(o).place is SettingPlace.FLAG), None)
    if typed is not None:
        raise UsageError(f"{typed.spellings()[0].flag} means nothing for a backup of {kind}", remedy="leave it out")


def _where(run: Run, stack: ExitStack) -> tuple[ClientSettings, bool]:
    """How to reach the cluster, and whether it is one of our own."""
    if not run[EMBEDDED]:
        return client_settings(run), False
    if run.settings.origin(BOOTSTRAP_SERVERS).place is SettingPlace.FLAG:
        raise UsageError("--embedded starts a broker of its own", remedy="leave --bootstrap-servers out")
    from logkeep.embedded.kafka import EmbeddedKafka  # noqa: PLC0415 - only this way needs Java

    directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=SCRATCH)))
    broker = stack.enter_context(EmbeddedKafka(directory / "broker", run.cache))
    return settings_from({}, Path(), bootstrap=broker.bootstrap), True


def _wish(run: Run, *, alone: bool) -> KafkaRestoreOptions:
    asked = run[OFFSETS]
    wishes = PlanOptions(
        offsets=None if asked == "auto" else Offsets(asked),
        parts=("data", "configs"),
        keep_all=True,
        replication_factor=1 if alone else run[REPLICATION_FACTOR],
    )
    renames = () if alone else (f"s/^/{SCRATCH}{run.token()[:8]}-/",)
    choice = RestoreSelection(run[TOPICS], run[EXCLUDE], renames, standing=not run.settings.typed(TOPICS))
    return KafkaRestoreOptions(choice, wishes, run[LIMIT_PRODUCE])


def _clean_up(task: KafkaRestore, done: KafkaRestoreDone) -> tuple[Finding, ...]:
    """Scratch topics go, by the ids that were stored when they were made; those that stay are told."""
    with Cluster(task.settings) as cluster:
        return tuple(abort_topics(cluster, done.plan.topics, topic_ids(task.state, done.restore_id))[1])


def _sweep(task: KafkaRestore, cluster_id: str) -> None:
    """Scratch topics that are still there, of drills whose process is gone, or that this one could not end."""
    here = this_process(task.tokens())
    with Cluster(task.settings) as cluster:
        there = {(t.name, t.id.hex) for t in cluster.metadata().topics if t.name.startswith(SCRATCH)}
        for row in list_restores(task.state) if there else ():
            if not row.drill or row.state is RestoreState.ABORTED:
                continue
            stored = task.stored(row.id)
            owner = stored.document.owner
            if stored.plan.cluster_id == cluster_id and (is_dead(owner, here) or same_process(owner, here)):
                ids = topic_ids(task.state, row.id)
                if there & set(ids.items()):
                    abort_topics(cluster, stored.plan.topics, ids)


def _report(source: str, done: KafkaRestoreDone, left: tuple[Finding, ...], *, alone: bool) -> DrillReport:
    receipt = done.receipt
    return DrillReport(
        source=source,
        backup=done.backup,
        restore=done.restore_id,
        where="embedded broker" if alone else f"cluster {done.plan.cluster_id}",
        verdict=receipt.verdict,
        topics=len(done.plan.topics),
        partitions=len(receipt.partitions),
        records=sum(p.records for p in receipt.partitions),
        bytes=sum(p.bytes for p in receipt.partitions),
        seconds=receipt.duration_s,
        findings=(*receipt.findings, *left),
    )
