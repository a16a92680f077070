"""Backups of applications in the repository: requests, copies of partitions, and how both become a backup.

log_names       the names of an application's logs and snapshots
copy_plan       which part of a log a copy still has to archive (pure)
partition_files     a partition's log and snapshot, written as segments
copies          requests and receipts in the journal of a backup
record          what a completed backup says of its application
settle          completes or fails a backup, from its journal alone
running_application     what a coordinator needs of one
answers         what the answers of its partitions mean (pure)
take            the coordinator
"""
