"""The formats of datasets by name."""

from typing import Final

from logkeep.errors import UsageError
from logkeep.kafka.datasets.formats import DatasetFormat

KAFKA_BACKUP_V1: Final = "kafka-backup-v1"
AVRO: Final = "avro"
PARQUET: Final = "parquet"
FORMAT_NAMES: Final = (KAFKA_BACKUP_V1, AVRO, PARQUET)


def dataset_format(name: str) -> DatasetFormat:
    """Loads the libraries of the format. Raises UsageError."""
    if name == KAFKA_BACKUP_V1:
        from logkeep.kafka.datasets.kafka_backup_v1 import KafkaBackupV1  # noqa: PLC0415 - numpy and pyarrow

        return KafkaBackupV1()
    if name in (AVRO, PARQUET):
        from logkeep.kafka.datasets.files import record_files  # noqa: PLC0415 - as above

        return record_files.AVRO if name == AVRO else record_files.PARQUET
    raise UsageError(f"{name!r} is no format of datasets", remedy=f"use one of {', '.join(FORMAT_NAMES)}")
