"""The plots of the benchmarks, from the tables of docs/benchmarks.md: `python -m docs.pictures.plots`.

The page is the only place with numbers; a test compares the plots in the repository with it.
"""

from pathlib import Path

from docs.pictures.bars import Bar, BarGroup, bar_chart
from docs.pictures.tables import Table, table_with

DIRECTORY = Path(__file__).parent
PAGE = DIRECTORY.parent / "benchmarks.md"
_SIZES = ("100 B", "1 kB")


def plots(page: str) -> dict[str, str]:
    """The text of each plot by file name."""
    return {
        "kafka-backup-speed.svg": _kafka_backup(page),
        "kafka-restore-speed.svg": _kafka_restore(page),
        "zookeeper-verify-speed.svg": _zookeeper_verify(page),
    }


def _kafka_backup(page: str) -> str:
    ours = table_with(page, "records", "backup, MB/s", "bare loop")
    peers = table_with(page, "peer", "MB/s")
    rows = {
        "records of 100 B": "100 B, uncompressed, 235 kB batches, 4 partitions",
        "records of 1 kB": "1 kB, uncompressed, 235 kB batches, 4 partitions",
        "records of 1 kB in 500 partitions": "1 kB, uncompressed, 500 partitions",
    }
    spark = dict(zip(rows, (f"Spark's Kafka connector 4.0.0 to Avro, {size}" for size in _SIZES), strict=False))
    groups = [BarGroup(name, (*_backup_bars(ours, row), *_peer(peers, spark.get(name)))) for name, row in rows.items()]
    note = "MB/s, one broker and two workers on one machine with 2 cores; lightest grey: what broker and disk allow"
    return bar_chart("Backing up Kafka", note, groups)


def _backup_bars(table: Table, row: str) -> tuple[Bar, ...]:
    return (
        Bar("logkeep kafka backup", table.number(row, "backup, MB/s"), "ours"),
        Bar("fetch, check, hash and write, nothing else", table.number(row, "bare loop"), "limit"),
        Bar("Apache's ConsumerPerformance, keeps nothing", table.number(row, "ConsumerPerformance"), "other"),
    )


def _peer(peers: Table, row: str | None) -> tuple[Bar, ...]:
    return (Bar("Spark's Kafka connector to Avro", peers.number(row, "MB/s"), "other"),) if row else ()


def _kafka_restore(page: str) -> str:
    columns = {
        "records of 100 B": "100 B, 235 kB batches",
        "records of 1 kB": "1 kB, 235 kB batches",
        "records of 100 B in small batches of 16 kB": "100 B, 16 kB batches",
    }
    table = table_with(page, "MB/s of payload", *columns.values())
    rows = (
        ("logkeep kafka restore", "restore, preserve, no holes", "ours"),
        ("Apache's ProducerPerformance, same batches", "ProducerPerformance, same batch size", "other"),
        ("Apache's ProducerPerformance, best settings", "ProducerPerformance, its best settings", "other"),
        ("confluent-kafka in a loop", "confluent-kafka in a loop", "other"),
        ("logkeep's proof of the restore", "proof", "ours"),
        ("Apache's ConsumerPerformance, only reads", "ConsumerPerformance", "other"),
    )
    groups = [
        BarGroup(name, tuple(Bar(label, table.number(row, column), kind) for label, row, kind in rows))
        for name, column in columns.items()
    ]
    return bar_chart("Restoring Kafka, and proving it", "MB/s of payload, on the same machine", groups)


def _zookeeper_verify(page: str) -> str:
    table = table_with(page, "MB/s of used bytes")
    rows = (
        ("logkeep verify --level data", "verify --level data: checked and hashed in one pass", "ours"),
        ("sha256sum", "sha256sum", "other"),
        ("Apache's TxnLogToolkit -d", "Apache's TxnLogToolkit -d", "other"),
    )
    groups = [
        BarGroup(f"data of {size}", tuple(Bar(name, table.number(row, size), kind) for name, row, kind in rows))
        for size in _SIZES
    ]
    note = "MB/s of used bytes on one core; every record and checksum is read, and everything is hashed"
    return bar_chart("Verifying ZooKeeper's transaction logs", note, groups)


def main() -> None:
    for name, text in plots(PAGE.read_text(encoding="utf-8")).items():
        (DIRECTORY / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
