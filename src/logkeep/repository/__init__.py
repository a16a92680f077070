"""The repository: which backups exist and how they are stored. Knows nothing of Kafka or ZooKeeper.

The format is described in docs/formats/repository.md.

chain           object names, sealed documents, the commit chain, leases: who may write, what was decided
parts           tables of segment rows, as Parquet files
object_writer   writes one data object: hash, pack, write, compare the length
segments        archived bytes: written and packed, read with any codec, batch by batch, or as far as damage allows
backups         one source and its backups: request, receipts, manifest, states, holds, verifications
upkeep          retention, prune, garbage collection, merging of segments, repair
verify          checks of a backup, level by level
restores        plans, attempts and receipts of restores
access          create or open a repository, choose a source
resume          receipts of an interrupted run that a new one may use
follow          the loop of `backup --follow`
standby         several instances that follow one source
"""
