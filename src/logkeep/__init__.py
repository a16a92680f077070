"""Logkeep: backup and restore for everything that is a log.

Layers, each importing only the ones below it (import-linter checks this):

    cli             parse, call one function, render one report
    application     applications that are backed up at a consistent cut, and backup sets
    python_api      the public Python API: backups of topics as Arrow tables
    reports         report values and how they are built
    config          every option declared once
    kinds           what each kind of source brings to the shared verbs
    embedded        real servers for the demo, drills and tests: Kafka, ZooKeeper
    kafka           Kafka clusters: client, backup, restore, salvage, verification
    zookeeper       ZooKeeper ensembles: the same, and history and repair
    checkpoint      partitions of applications and of Zeebe: their cut, archive, restore and certificate
    engine          runs tasks inline, in threads or on Spark
    repository      which backups exist and how they are stored
    directories     directories opened once, worked in with the rights of their owner
    formats         byte formats: Kafka logs, ZooKeeper files, run maps
    store           objects under names, in a directory or a bucket
    secret_reading  secrets from files and commands
    file_owners     who can change a file
    http_deadline   a limit of time for a whole HTTP request
    model           frozen values without I/O
    errors          the error tree
"""

from typing import TYPE_CHECKING

from logkeep.model.version import __version__

if TYPE_CHECKING:
    from logkeep.python_api import BackupRepository

__all__ = ["__version__", "open"]


def open(url: str, source: str | None = None) -> "BackupRepository":  # noqa: A001 - read as `logkeep.open`
    """Open a repository to read backups of Kafka topics as Arrow tables; see docs/guides/records.md.

    `source` may be left out where the repository has one. Raises an error of `logkeep.errors`.
    """
    from logkeep.python_api import open_backups  # noqa: PLC0415 - Arrow, slow to load

    return open_backups(url, source)
