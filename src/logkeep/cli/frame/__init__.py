"""How any command of `logkeep` or `zkbackup` is carried out: parsing, logs, metrics, errors, signals, exit codes."""
