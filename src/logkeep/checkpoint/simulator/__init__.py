"""Runs partitions, coordinators and a store under seeded faults in virtual time, and judges every completed backup.

plan        what happens in one schedule: how many of everything, and the faults. All of it from a seed
world       the scheduler: every step of every process is a point at which another one may run, crash or fail
sim_log     a partition's log with bytes that a crash may drop, and terms
sim_transport   messages that are lost, doubled and reordered
sim_store   a repository that fails before or after an effect
leader      a partition's leader around the shipped machine
modelled_archive    most schedules: the shipped rules of copies and of their end, around a store in dictionaries
copy_job    a leader's copy for one backup, modelled
coordination    the coordinator of one backup, modelled
shipped_archive     every sixteenth schedule: the shipped actor, snapshot store, coordinator and restore
sim_repository  the shipped repository over a store in memory that fails
workload    the handlers that are simulated, and what must hold in the end
restore_check   a completed backup restored and drained
judge       what a cut and a log may look like; knows nothing of checkpoints
schedules   runs seeds, and looks for the shortest schedule that still fails
"""
