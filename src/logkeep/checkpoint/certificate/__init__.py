"""Proves from archived bytes that the cut of a backup is consistent.

tables          what every task gets and returns
snapshot_file   a snapshot as rows and system keys
log_check       the records of one partition's log, against the tables
state_fold      the last write of every key, and the digest of a state
message_fold    what a partition has sent and received
log_task        the tasks that an engine runs
set_members     where the other members of a backup set end
rules           V1 to V13 of an application (pure)
run             the verification at the level `cut`
"""
