"""The program `zkbackup`: backup, restore, verify, list, info and prune for the bundles of one ZooKeeper server.

A *bundle* is a self-contained directory: snapshots, transaction logs, documents about them. The program has its own
options and configuration files (`options`, `settings`), its own exit codes and error document (`error_text`), and one
module per command; streams, logs, progress and metrics are those of `cli.frame`.
"""
