"""Runs partitions, coordinators and a store under seeded faults in virtual time, and judges every completed backup.

plan        what happens in one schedule: how many of everything, and the faults. All of it from a seed
world       the scheduler: every step of every process is a point at which another one may run, crash or fail
sim_log     a partition's log with bytes that a crash may drop, and terms
sim_transport   messages that are lost, doubled and reordered
sim_store   a repository that fails before or after an effect
leader      a partition's leader around the shipped machine
copying     a leader's copy for one backup
coordination    the coordinator of one backup
workload    the handlers that are simulated, and what must hold in the end
restoring   a completed backup restored and drained
judge       what a cut and a log may look like; knows nothing of checkpoints
schedules   runs seeds, and looks for the shortest schedule that still fails
"""
