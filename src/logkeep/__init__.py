"""Logkeep: backup and restore for everything that is a log.

Layers, each importing only what stands below it (import-linter checks this):

    cli         parse, call one function, render one report
    config      every option declared once
    embedded    real servers for the demo and the tests: Kafka, ZooKeeper
    spark       the only door to pyspark: session, engine, jars
    kafka       Kafka clusters: connections, metadata, admin calls (beside spark, neither imports the other)
    repository  which backups exist, and how they stay
    store       bytes under names
    model       frozen values without I/O
    errors      the whole error tree
"""

__version__ = "0.1.0"
