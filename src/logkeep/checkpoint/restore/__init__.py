"""Restores an application from the archive into a data directory, to a backup or to a checkpoint between two backups.

plan        which log and snapshot each partition gets, and what is dropped (pure)
points      what the archive offers: the records of all backups
stage_task  one partition's files, written and compared by a task of an engine
state_proof     the state that staged files give
histories   the number of each restore, reserved in the repository
receipts    what the repository keeps of a restore
target      what a restore drops of the directory
swap        puts the staged files in place, so that nothing can start in between
run         the steps
"""
