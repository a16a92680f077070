"""Runs the shipped loop of participants and their coordinator over a simulated cluster, and judges every cut.

turns       processes as threads of which one runs; every call of a client is a point at which another may go on
cluster     logs, transactions and groups
clients     what the loop and the coordinator use of their client libraries
judge       a cut by the texts of the records inside; knows neither headers nor ids of checkpoints
schedules   one application, its clients, faults and backups, all from a seed
"""
