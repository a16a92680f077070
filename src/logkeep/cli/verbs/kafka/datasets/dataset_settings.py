"""What the settings say about a dataset: where it is, its format, and what is exported into it."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from logkeep.cli.frame.execute import Run
from logkeep.cli.wiring import opened_store, use_directories
from logkeep.config.options import (
    AVRO_CODEC,
    AVRO_SCHEMA,
    DATASET_FORMAT,
    DATASET_URL,
    EXCLUDE,
    INTERNAL,
    ISOLATION,
    LIMIT_UPLOAD,
    PARTITIONS,
    REWRITE,
    SEGMENT_BYTES,
    TOPICS,
)
from logkeep.errors import UsageError
from logkeep.kafka.datasets.format_table import AVRO
from logkeep.kafka.datasets.formats import DatasetOptions
from logkeep.kafka.datasets.run import DatasetExport, ExportOptions
from logkeep.kafka.datasets.sources.selection import ExportSelection
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.model.findings import Finding
from logkeep.store.access import create_place, local_root

if TYPE_CHECKING:
    from logkeep.kafka.dataset_upkeep.verify import CheckedPartition


def wanted_export(run: Run) -> DatasetExport:
    """Raises UsageError if --format or --to is missing."""
    url, name = run[DATASET_URL], run[DATASET_FORMAT]
    if url is None or name is None:
        remedy = (
            "add --to DIRECTORY, or the URL of a bucket"
            if url is None
            else "add --format kafka-backup-v1, avro or parquet"
        )
        raise UsageError("a dataset needs --format and --to", remedy=remedy)
    root = local_root(url)
    if root is not None and run.settings.typed(LIMIT_UPLOAD):
        raise UsageError("--limit-upload is for a dataset in a bucket", remedy="use --limit-download")
    if root is not None:
        use_directories(run, root, written=True)
    options = ExportOptions(name, run[ISOLATION], _files(run, name), run[REWRITE])
    target = DatasetTarget(opened_store(run, url), root)
    return DatasetExport(target, options, _read_back, partial(create_place, url), partial(_ask, run))


def _ask(run: Run, dropped: Sequence[Finding]) -> None:
    first, more = dropped[0], f" (and {len(dropped) - 1} more)" if len(dropped) > 1 else ""
    run.confirm(f"{first.where}: {first.what}{more}. Write the topic anew?")


def _read_back(target: DatasetTarget) -> "Iterable[CheckedPartition]":
    from logkeep.kafka.dataset_upkeep.verify import read_back  # noqa: PLC0415 - Arrow, slow to load

    return read_back(target)


def _files(run: Run, name: str) -> DatasetOptions:
    if name == AVRO:
        return DatasetOptions(run[SEGMENT_BYTES], run[AVRO_SCHEMA], run[AVRO_CODEC])
    for option in (AVRO_SCHEMA, AVRO_CODEC):
        if run.settings.typed(option):
            raise UsageError(f"--{option.name} is for --format avro", remedy=f"remove --{option.name}")
    return DatasetOptions(run[SEGMENT_BYTES])


def wanted_logs(run: Run) -> ExportSelection:
    return ExportSelection(run[TOPICS], run[EXCLUDE], run[INTERNAL], run[PARTITIONS])
