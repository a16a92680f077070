"""`logkeep drill` of a backup of Kafka: into scratch topics of a cluster, or into an embedded broker."""

import tempfile
from contextlib import ExitStack
from pathlib import Path

from logkeep.cli.frame.execute import Run
from logkeep.cli.verbs.kafka.backup import client_settings
from logkeep.cli.verbs.kafka.restore import restore_engines
from logkeep.cli.wiring import restores_place
from logkeep.config.options import (
    BOOTSTRAP_SERVERS,
    EMBEDDED,
    EXCLUDE,
    LIMIT_PRODUCE,
    OFFSETS,
    REPLICATION_FACTOR,
    TOPICS,
)
from logkeep.config.settings import SettingPlace
from logkeep.errors import UsageError
from logkeep.file_owners import OriginFile
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.properties import settings_from
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.record.backup_view import view_backup
from logkeep.kafka.restore.facts.units import Offsets
from logkeep.kafka.restore.plan.selection import RestoreSelection
from logkeep.kafka.restore.plan.values import PlanOptions
from logkeep.kafka.restore.prepare import ClockAndTokens, KafkaRestoreOptions, prepare
from logkeep.kafka.restore.run import KafkaRestore, KafkaRestoreDone
from logkeep.kafka.restore.topics import abort_topics
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId
from logkeep.reports.drill import SCRATCH, DrillReport
from logkeep.repository.backups.holds import reading
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry
from logkeep.repository.chain.owner import is_dead, same_process, this_process
from logkeep.repository.restores import RestoreState, list_restores, topic_ids


def drill_kafka(run: Run, place: SourceRef, entry: BackupEntry) -> DrillReport:
    with ExitStack() as stack:
        settings, alone = _target(run, stack)
        held = stack.enter_context(reading(place, BackupId(entry.id), this_process(run.token()), "drill", run.token))
        view, options = view_backup(place, held), _restore_options(run, alone=alone)
        chance = ClockAndTokens(run.clock, run.token)
        engines = restore_engines(run, prove=options.plan.prove)
        # Objects are not checked beforehand: a drill is to find a lost object, and to leave a receipt that says so.
        prepared = prepare(view, options, settings, engines, chance, presence=False)
        if prepared.refusals:
            raise prepared.refusals[0]
        task = KafkaRestore(place, restores_place(run, place, create=True), settings, run.clock, run.token)
        engine = engines(prepared.plan.bytes)
        if not alone:
            stack.callback(_sweep, task, prepared.plan.cluster_id)
            _sweep(task, prepared.plan.cluster_id)
        done = task.begin(prepared, options, engine, {}, drill=True)
        left = () if alone else _clean_up(task, done)
    return _report(place.source, done, left, alone=alone)


def _target(run: Run, stack: ExitStack) -> tuple[ClientSettings, bool]:
    """How to reach the cluster, and whether it is an embedded broker of this drill."""
    if not run[EMBEDDED]:
        return client_settings(run), False
    if run.settings.origin(BOOTSTRAP_SERVERS).place is SettingPlace.FLAG:
        raise UsageError("--embedded starts its own broker", remedy="leave --bootstrap-servers out")
    from logkeep.embedded.kafka import EmbeddedKafka  # noqa: PLC0415 - only this way needs Java

    directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=SCRATCH)))
    run.say("a Kafka broker is starting")
    broker = stack.enter_context(EmbeddedKafka(directory / "broker", run.cache))
    return settings_from({}, OriginFile(Path()), bootstrap=broker.bootstrap), True


def _restore_options(run: Run, *, alone: bool) -> KafkaRestoreOptions:
    asked = run[OFFSETS]
    plan_options = PlanOptions(
        offsets=None if asked == "auto" else Offsets(asked),
        parts=("data", "configs"),
        keep_all=True,
        replication_factor=1 if alone else run[REPLICATION_FACTOR],
    )
    renames = () if alone else (f"s/^/{SCRATCH}{run.token()[:8]}-/",)
    choice = RestoreSelection(run[TOPICS], run[EXCLUDE], renames, configured=not run.settings.typed(TOPICS))
    return KafkaRestoreOptions(choice, plan_options, run[LIMIT_PRODUCE])


def _clean_up(task: KafkaRestore, done: KafkaRestoreDone) -> tuple[Finding, ...]:
    """Delete scratch topics by the ids that were stored when they were created; those that stay are findings."""
    with Cluster(task.settings) as cluster:
        return tuple(abort_topics(cluster, done.plan.topics, topic_ids(task.state, done.restore_id))[1])


def _sweep(task: KafkaRestore, cluster_id: str) -> None:
    """Delete remaining scratch topics of drills whose process has died, or that this process could not complete."""
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
