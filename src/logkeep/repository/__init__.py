"""Which backups exist, and how they stay: the format of docs/formats/repository.md, nothing of Kafka or ZooKeeper.

layout        the only builder of object names
documents     sealed JSON documents: how metadata is written and read
format        the format object: create and open a repository
actions       what one commit can say;  fold: what all commits together mean (pure)
chain         reading and extending the commit chain in a store
manifest      what a backup consists of;  parts: its segment rows as Parquet
journal       requests and receipts of a backup that is under way
states        the four states of a backup as types, and of a group of backups
lease, holds  who may write; who must not be pruned under
source        one source: its backups, and the steps of a new one
retention     which backups a policy keeps (pure)
prune         delete, mark, sweep
verify        what is damaged;  repair: rebuild every cache by listing
"""
