"""`logkeep kafka backup --format`: a cluster as a dataset, without a repository; once, or in rounds with --follow."""

from logkeep.cli.frame.execute import Run
from logkeep.cli.verbs.kafka.datasets.dataset_settings import wanted_export, wanted_logs
from logkeep.cli.verbs.kafka.datasets.followed_export import followed_export
from logkeep.cli.verbs.kafka.datasets.report import DatasetReport, dataset_report, plan_report
from logkeep.cli.wiring import chosen_engine, refuse_contradictions
from logkeep.config.options import (
    ACCEPT_DELETIONS,
    ALLOW_GAPS,
    AVRO_CODEC,
    AVRO_SCHEMA,
    BACKUP_ID,
    CATCH_UP_BYTES,
    CLIENT_RACK,
    COMPACTED,
    COMPRESSION,
    CONTROLLER_CONFIG,
    CONTROLLERS,
    COORDINATION_TOPIC,
    DATASET_FORMAT,
    DATASET_URL,
    FOLLOW,
    GENERATION_DAYS,
    INSTANCE,
    INSTANCE_ROLE,
    ISOLATION,
    LEASE_TTL,
    LIMIT_DOWNLOAD,
    PARTITIONS,
    REGISTRY,
    REGISTRY_CONFIG,
    REPO,
    RESUME,
    REWRITE,
    SCRAM_TO,
    SOURCE,
    STANDBY,
    TAG,
)
from logkeep.errors import UsageError
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.datasets.run import LABEL
from logkeep.kafka.datasets.sources.cluster_facts import read_cluster
from logkeep.kafka.datasets.sources.export_sources import ClusterSource

_OF_A_REPOSITORY = (
    REPO, SOURCE, CLIENT_RACK, SCRAM_TO, CONTROLLERS, CONTROLLER_CONFIG, REGISTRY, REGISTRY_CONFIG, BACKUP_ID,
    COMPRESSION, COMPACTED, GENERATION_DAYS, CATCH_UP_BYTES, ACCEPT_DELETIONS, RESUME, STANDBY, INSTANCE, INSTANCE_ROLE,
    COORDINATION_TOPIC, TAG, LEASE_TTL,
)  # fmt: skip
_OF_A_DATASET = (DATASET_URL, PARTITIONS, ISOLATION, REWRITE, AVRO_SCHEMA, AVRO_CODEC)


def wants_dataset(run: Run) -> bool:
    """Raises UsageError for options of datasets without --format, and for options of a repository with it."""
    named = run[DATASET_FORMAT] is not None
    for option in _OF_A_REPOSITORY if named else _OF_A_DATASET:
        if run.settings.typed(option):
            what = "is for backups into a repository" if named else "is for a dataset"
            remedy = "leave it out, or leave --format out" if named else "add --format"
            raise UsageError(f"--{option.typed or option.name} {what}", remedy=remedy)
    return named


def dataset_backup(run: Run, settings: ClientSettings) -> DatasetReport:
    refuse_contradictions(run)
    task = wanted_export(run)
    if run[FOLLOW]:
        return followed_export(run, task, lambda engines: task.run(_source(run, settings), engines))
    if run.dry_run:
        return plan_report(task.prepare(_source(run, settings)), task.target.url, allow_gaps=run[ALLOW_GAPS])
    done = task.run(_source(run, settings), lambda size_bytes: chosen_engine(run, size_bytes, work=LABEL))
    return dataset_report(done, task.target.url, allow_gaps=run[ALLOW_GAPS])


def _source(run: Run, settings: ClientSettings) -> ClusterSource:
    with Cluster(settings) as cluster:
        facts = read_cluster(cluster, wanted_logs(run))
    return ClusterSource(facts, settings, run[ISOLATION] == "committed", run[LIMIT_DOWNLOAD])
