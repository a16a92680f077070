"""Logkeep: backup and restore for everything that is a log.

Layers, each importing only what stands below it (import-linter checks this):

    cli         parse, call one function, render one report
    config      every option declared once
    embedded    real servers for the demo and the tests: Kafka, ZooKeeper
    kafka       Kafka clusters: connections, metadata, admin calls, and how their logs are archived
    spark       the only door to pyspark: session, engine, jars; kafka and spark do not import each other
    repository  which backups exist, and how they stay
    formats     bytes and what they mean: Kafka's log format, the batch index
    store       bytes under names; independent of formats
    model       frozen values without I/O
    errors      the whole error tree
"""

__version__ = "0.1.0"
