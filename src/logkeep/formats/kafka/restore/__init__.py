"""The batches that a restore writes: sent to a cluster, or stored in the log files of a broker."""
