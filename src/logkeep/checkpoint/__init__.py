"""Consistent checkpoints of partitioned stream processors: one cut over all partitions, taken without a pause.

The words, in the order in which they matter:

- a *partition* has a log of its own, and a leader that processes it. Inputs of the log are commands, creates and
  acknowledgements. The result of a command is its *event*, which has everything that the handler changed and sent.
- a *create* is the record that marks a checkpoint in the log of one partition; the result of it is *created*, or
  *ignored* if the partition has a later checkpoint. The cut of a backup is the log up to and including its create.
- a *stamp* is the id of the sender's last checkpoint, on every message between partitions. A message with a newer id
  than its receiver's is preceded by a *forced* create: so no message crosses a cut in the wrong direction.
- a *history* begins with each restore; messages of an earlier history are ignored.

`machine` and `machine_state` decide, without I/O; `processor` executes what they decide. `backup_actor` copies one
partition, `archive` makes a backup of the copies, `restore` brings it back, `certificate` proves its cut. `simulator`
runs all of it under faults. `zeebe` reads, takes and checks backups of Zeebe.
"""
