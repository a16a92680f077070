"""All verbs of `logkeep`, with the module of each.

To add a verb: write it (see the docstring of `logkeep.cli`), add its line here, run `make reference`.
The summary is the first line of the verb's docstring, repeated here so that `logkeep --help` loads no verb; a test
keeps the two equal.
"""

from dataclasses import dataclass

from logkeep.cli.frame.command_groups import CommandEntry, named_object
from logkeep.cli.frame.verb import Declaration, Verb, VerbParser


@dataclass(frozen=True)
class VerbEntry(CommandEntry):
    """One verb of `logkeep`."""

    declared: str = ""
    """`module:name` of its Declaration, where the verb's own module loads heavy libraries."""

    def load(self) -> Verb:
        found = super().load()
        if not isinstance(found, Verb):
            raise TypeError(f"{self.where} is not a verb")
        return found

    def parser(self) -> VerbParser:
        if not self.declared:
            return self.load()
        found = named_object(self.declared)
        if not isinstance(found, Declaration):
            raise TypeError(f"{self.declared} is not a declaration")
        return VerbParser(found, self.load)


VERBS: tuple[VerbEntry, ...] = (
    VerbEntry("init", "logkeep.cli.verbs.repository.init:init", "Create a repository."),
    VerbEntry(
        "check",
        "logkeep.cli.verbs.repository.init:check",
        "Check whether configuration, store and repository are ready for the next run.",
    ),
    VerbEntry("list", "logkeep.cli.verbs.list:list_backups", "List all backups, oldest first."),
    VerbEntry(
        "info",
        "logkeep.cli.verbs.info:info",
        "Show what is in a backup: its logs, ranges, sizes, gaps, findings.",
        "logkeep.cli.verbs.declarations:INFO",
    ),
    VerbEntry(
        "verify",
        "logkeep.cli.verbs.verify:verify",
        "Verify a backup and name every object that is missing or damaged.",
        "logkeep.cli.verbs.declarations:VERIFY",
    ),
    VerbEntry(
        "drill",
        "logkeep.cli.verbs.drill:drill",
        "Restore a backup to a scratch target, prove it, clean up, and report the recovery time.",
    ),
    VerbEntry(
        "status",
        "logkeep.cli.verbs.status:status",
        "Report whether each source has a recent good backup, what runs and what was interrupted.",
    ),
    VerbEntry(
        "delete",
        "logkeep.cli.verbs.repository.prune:delete",
        "Delete backups by id.",
        "logkeep.cli.verbs.declarations:DELETE",
    ),
    VerbEntry(
        "prune",
        "logkeep.cli.verbs.repository.prune:prune",
        "Delete the backups that the retention policy does not keep, and free space.",
        "logkeep.cli.verbs.declarations:PRUNE",
    ),
    VerbEntry(
        "hold",
        "logkeep.cli.verbs.repository.hold:hold",
        "Hold a backup: neither `prune` nor `delete` removes it until it is released.",
    ),
    VerbEntry(
        "release",
        "logkeep.cli.verbs.repository.hold:release",
        "Release a held backup: `prune` and `delete` may remove it again.",
    ),
    VerbEntry("unlock", "logkeep.cli.verbs.repository.repair:unlock", "Remove the lease of a run that has died."),
    VerbEntry(
        "repair",
        "logkeep.cli.verbs.repository.repair:repair",
        "Rebuild checkpoints, the second format object, a source's document or a broken lease.",
    ),
    VerbEntry(
        "sql",
        "logkeep.cli.verbs.sql:sql",
        "Query a backup with SQL.",
        "logkeep.cli.verbs.declarations:SQL_QUERY",
    ),
    VerbEntry(
        "demo",
        "logkeep.cli.verbs.demo:demo",
        "Demonstrate backup and restore with real servers that it starts and stops itself.",
    ),
    VerbEntry(
        "app backup",
        "logkeep.cli.verbs.application.backup:backup",
        "Back up a running application: one consistent checkpoint over all partitions, without a pause.",
        "logkeep.cli.verbs.application.declarations:BACKUP",
    ),
    VerbEntry(
        "app status",
        "logkeep.cli.verbs.application.backup:status",
        "Show the state of a backup of an application: doesNotExist, ongoing, completed or failed, with the reason.",
        "logkeep.cli.verbs.application.declarations:STATUS",
    ),
    VerbEntry(
        "app checkpoint",
        "logkeep.cli.verbs.application.backup:checkpoint",
        "Mark a checkpoint in the logs of a running application, without a copy.",
        "logkeep.cli.verbs.application.declarations:CHECKPOINT",
    ),
    VerbEntry(
        "app serve",
        "logkeep.cli.verbs.application.serve:serve_application",
        "Serve the HTTP interface to backups of an application: take, show, list, delete, and plan a restore.",
        "logkeep.cli.verbs.application.declarations:SERVE",
    ),
    VerbEntry(
        "app restore",
        "logkeep.cli.verbs.application.restore:restore_application",
        "Restore an application to a backup or to a checkpoint between two backups.",
        "logkeep.cli.verbs.application.declarations:RESTORE",
    ),
    VerbEntry(
        "backup-set take",
        "logkeep.cli.verbs.backup_set.take:take_set",
        "Back up several sources under one id: applications, Kafka clusters, ZooKeeper ensembles.",
        "logkeep.cli.verbs.backup_set.declarations:TAKE",
    ),
    VerbEntry(
        "backup-set status",
        "logkeep.cli.verbs.backup_set.take:status",
        "Show a backup set: the state of each member, the certificate of the application, and how to restore it.",
        "logkeep.cli.verbs.backup_set.declarations:STATUS",
    ),
    VerbEntry(
        "kafka backup",
        "logkeep.cli.verbs.kafka.backup:backup",
        "Back up a Kafka cluster: its logs byte for byte, topics, groups, ACLs, quotas.",
        "logkeep.cli.verbs.kafka.declarations:BACKUP",
    ),
    VerbEntry(
        "kafka export",
        "logkeep.cli.verbs.kafka.datasets.export:export",
        "Write the records of a backup as a dataset: files in a format that other tools read.",
        "logkeep.cli.verbs.kafka.datasets.declarations:EXPORT",
    ),
    VerbEntry(
        "kafka restore",
        "logkeep.cli.verbs.kafka.restore:restore",
        "Restore a backup into a Kafka cluster: records, configs, groups, and a proof.",
        "logkeep.cli.verbs.kafka.declarations:RESTORE",
    ),
    VerbEntry(
        "kafka restore abort",
        "logkeep.cli.verbs.kafka.restore_abort:abort",
        "Abort a restore: topics that it created are deleted, others get their configs back.",
        "logkeep.cli.verbs.kafka.declarations:RESTORE_ABORT",
    ),
    VerbEntry(
        "kafka show",
        "logkeep.cli.verbs.kafka.show:show",
        "Show archived records of a topic: at an offset, the first or last ones, or those with a key or a text.",
        "logkeep.cli.verbs.kafka.declarations:SHOW_RECORDS",
    ),
    VerbEntry(
        "kafka groups",
        "logkeep.cli.verbs.kafka.groups:groups",
        "Show the archived offsets of consumer groups, also for topics that were deleted since.",
        "logkeep.cli.verbs.kafka.declarations:GROUPS",
    ),
    VerbEntry(
        "kafka groups restore",
        "logkeep.cli.verbs.kafka.groups_restore:restore",
        "Restore the offsets of consumer groups, in the cluster that has their records.",
        "logkeep.cli.verbs.kafka.declarations:GROUPS_RESTORE",
    ),
    VerbEntry(
        "kafka groups rollback",
        "logkeep.cli.verbs.kafka.groups_restore:rollback",
        "Undo a restore of consumer groups: each gets the offsets it had before.",
        "logkeep.cli.verbs.kafka.declarations:GROUPS_ROLLBACK",
    ),
    VerbEntry(
        "kafka schemas list",
        "logkeep.cli.verbs.kafka.schemas.listing:list_schemas",
        "List the archived schemas of a registry: subjects, versions, ids, also deleted ones.",
        "logkeep.cli.verbs.kafka.schemas.declarations:LIST",
    ),
    VerbEntry(
        "kafka schemas show",
        "logkeep.cli.verbs.kafka.schemas.listing:show",
        "Show what a schema id means, with its references and the subjects that use it.",
        "logkeep.cli.verbs.kafka.schemas.declarations:SHOW",
    ),
    VerbEntry(
        "kafka schemas check",
        "logkeep.cli.verbs.kafka.schemas.check:check",
        "Check that the archived registry knows every schema id in the archived records.",
        "logkeep.cli.verbs.kafka.schemas.declarations:CHECK",
    ),
    VerbEntry(
        "kafka schemas restore",
        "logkeep.cli.verbs.kafka.schemas.restore:restore",
        "Restore a registry: every id, version and reference as archived, and read back.",
        "logkeep.cli.verbs.kafka.schemas.declarations:RESTORE",
    ),
    VerbEntry(
        "kafka generations",
        "logkeep.cli.verbs.kafka.generations:generations",
        "Show the copies of compacted topics: the active one, older ones, and one that is being made.",
        "logkeep.cli.verbs.kafka.declarations:GENERATIONS",
    ),
    VerbEntry(
        "kafka generations new",
        "logkeep.cli.verbs.kafka.generations:new",
        "Begin a new generation of compacted topics: fresh copies that leave out what compaction has removed.",
        "logkeep.cli.verbs.kafka.declarations:GENERATIONS_NEW",
    ),
    VerbEntry(
        "kafka generations cancel",
        "logkeep.cli.verbs.kafka.generations:cancel_catch_ups",
        "End catch-ups of compacted topics: the active copies stay in use.",
        "logkeep.cli.verbs.kafka.declarations:GENERATIONS_CANCEL",
    ),
    VerbEntry(
        "kafka salvage",
        "logkeep.cli.verbs.kafka.salvage:salvage",
        "Back up a Kafka cluster from the disks of brokers that no longer run.",
        "logkeep.cli.verbs.kafka.declarations:SALVAGE",
    ),
    VerbEntry(
        "kafka import",
        "logkeep.cli.verbs.kafka.datasets.import_:import_",
        "Import a dataset or an archive of another backup tool into a repository.",
        "logkeep.cli.verbs.kafka.datasets.import_declarations:IMPORT",
    ),
    VerbEntry(
        "kafka fold",
        "logkeep.cli.verbs.kafka.fold:fold",
        "Keep only the latest record of each key in archived compacted topics, for all kept backups.",
        "logkeep.cli.verbs.kafka.declarations:FOLD",
    ),
    VerbEntry(
        "kafka dataset verify",
        "logkeep.cli.verbs.kafka.datasets.check:verify",
        "Check a dataset: read every record, and compare every index with the records.",
        "logkeep.cli.verbs.kafka.datasets.upkeep_declarations:VERIFY",
    ),
    VerbEntry(
        "kafka dataset info",
        "logkeep.cli.verbs.kafka.datasets.check:info",
        "Show what a dataset has: format, topics, partitions, offsets, groups. Reads no record.",
        "logkeep.cli.verbs.kafka.datasets.upkeep_declarations:INFO",
    ),
    VerbEntry(
        "kafka dataset reindex",
        "logkeep.cli.verbs.kafka.datasets.change:reindex",
        "Write both kinds of index of a kafka-backup-v1 dataset again from its records.",
        "logkeep.cli.verbs.kafka.datasets.upkeep_declarations:REINDEX",
    ),
    VerbEntry(
        "kafka dataset prune",
        "logkeep.cli.verbs.kafka.datasets.change:prune",
        "Delete the oldest segments of a dataset by the age of their records.",
        "logkeep.cli.verbs.kafka.datasets.upkeep_declarations:PRUNE",
    ),
    VerbEntry(
        "kafka optimize",
        "logkeep.cli.verbs.repository.optimize:optimize_kafka",
        "Merge the small objects of frequent backups into larger ones, for all backups at once.",
    ),
    VerbEntry(
        "zookeeper backup",
        "logkeep.cli.verbs.zookeeper.backup:backup",
        "Back up ZooKeeper from the files of one server or of several, while they run.",
        "logkeep.cli.verbs.zookeeper.declarations:BACKUP",
    ),
    VerbEntry(
        "zookeeper restore",
        "logkeep.cli.verbs.zookeeper.restore.verb:restore",
        "Replace the data of stopped servers by the tree of a backup.",
        "logkeep.cli.verbs.zookeeper.restore.declarations:RESTORE",
    ),
    VerbEntry(
        "zookeeper restore survey",
        "logkeep.cli.verbs.zookeeper.restore.survey:survey",
        "Record the state of the servers on this host, as input for `restore plan`.",
        "logkeep.cli.verbs.zookeeper.restore.declarations:SURVEY",
    ),
    VerbEntry(
        "zookeeper restore plan",
        "logkeep.cli.verbs.zookeeper.restore.plan:plan",
        "Make one restore plan for all members of an ensemble from the surveys of their hosts.",
        "logkeep.cli.verbs.zookeeper.restore.declarations:PLAN",
    ),
    VerbEntry(
        "zookeeper restore-subtree",
        "logkeep.cli.verbs.zookeeper.restore.subtree:restore_subtree",
        "Restore one subtree of a backup into a running ensemble.",
        "logkeep.cli.verbs.zookeeper.restore.declarations:RESTORE_SUBTREE",
    ),
    VerbEntry(
        "zookeeper optimize",
        "logkeep.cli.verbs.repository.optimize:optimize_zookeeper",
        "Merge the small objects of frequent backups into larger ones, for all backups at once.",
    ),
    VerbEntry(
        "zookeeper export",
        "logkeep.cli.verbs.zookeeper.convert:export",
        "Write one member's files of a backup as a bundle, which `zkbackup` reads.",
        "logkeep.cli.verbs.zookeeper.declarations:EXPORT",
    ),
    VerbEntry(
        "zookeeper import",
        "logkeep.cli.verbs.zookeeper.convert:import_",
        "Import a bundle into a repository, as the next backup of its source.",
        "logkeep.cli.verbs.zookeeper.declarations:IMPORT",
    ),
    VerbEntry(
        "zookeeper repair",
        "logkeep.cli.verbs.zookeeper.repair:repair",
        "Repair the damaged objects of a backup, and name what is lost.",
    ),
    VerbEntry(
        "zookeeper history",
        "logkeep.cli.verbs.zookeeper.history:history",
        "Show which sessions created, changed and deleted a znode, and when.",
        "logkeep.cli.verbs.zookeeper.declarations:HISTORY",
    ),
    VerbEntry(
        "zookeeper diff",
        "logkeep.cli.verbs.zookeeper.diff:diff",
        "Compare two archived trees: two backups, two transactions or two members.",
        "logkeep.cli.verbs.zookeeper.declarations:DIFF",
    ),
    VerbEntry(
        "zookeeper log",
        "logkeep.cli.verbs.zookeeper.log:log",
        "Query archived transactions with SQL.",
        "logkeep.cli.verbs.zookeeper.declarations:LOG",
    ),
    VerbEntry(
        "zeebe backup",
        "logkeep.cli.verbs.zeebe.backup:backup",
        "Let Zeebe back itself up, follow it to the end, and verify what it stored.",
        "logkeep.cli.verbs.zeebe.archive_declarations:BACKUP",
    ),
    VerbEntry(
        "zeebe import",
        "logkeep.cli.verbs.zeebe.import_:import_",
        "Import a backup of Zeebe into a repository: logs up to its checkpoint, and only what is not archived yet.",
        "logkeep.cli.verbs.zeebe.archive_declarations:IMPORT",
    ),
    VerbEntry(
        "zeebe export",
        "logkeep.cli.verbs.zeebe.export:export",
        "Write a backup into a store from which Zeebe's own `restore` restores it.",
        "logkeep.cli.verbs.zeebe.archive_declarations:EXPORT",
    ),
    VerbEntry(
        "zeebe list",
        "logkeep.cli.verbs.zeebe.list:list_stored",
        "List the backups that Zeebe stored, with the state of each.",
        "logkeep.cli.verbs.zeebe.declarations:LIST",
    ),
    VerbEntry(
        "zeebe verify",
        "logkeep.cli.verbs.zeebe.verify:verify",
        "Verify a backup that Zeebe stored: every file, and that its cut is consistent.",
        "logkeep.cli.verbs.zeebe.declarations:VERIFY",
    ),
    VerbEntry(
        "app simulate",
        "logkeep.cli.verbs.application.simulate:simulate",
        "Run partitions of an application under seeded faults in virtual time, and judge every backup.",
    ),
    VerbEntry(
        "receipts list",
        "logkeep.cli.verbs.receipts:list_receipts",
        "List all restores and drills, oldest first, with how each of them ended.",
    ),
    VerbEntry(
        "receipts show",
        "logkeep.cli.verbs.receipts:show",
        "Show what a restore or drill did and proved, partition by partition and group by group.",
    ),
    VerbEntry("config show", "logkeep.cli.verbs.config:show", "Print every setting with the place it came from."),
    VerbEntry(
        "config validate", "logkeep.cli.verbs.config:validate", "Check all configuration and show every problem."
    ),
    VerbEntry(
        "store probe",
        "logkeep.cli.verbs.repository.store:probe",
        "Test what a store can do and report it in plain words.",
    ),
    VerbEntry("completion", "logkeep.cli.verbs.completion:completion", "Print the completion script for a shell."),
    VerbEntry("version", "logkeep.cli.verbs.version:version", "Print the version of Logkeep and what it runs on."),
)

GROUPS: dict[str, str] = {
    "app": "Back up and restore stream processors: applications of partitions.",
    "backup-set": "Back up several sources under one id, and show what such a set is.",
    "config": "Show and check the configuration.",
    "kafka": "Back up and restore Kafka clusters.",
    "kafka dataset": "Check, describe, index again and prune datasets.",
    "kafka schemas": "Show, check and restore archived schema registries.",
    "receipts": "Show restores and drills, and what they proved.",
    "store": "Test object stores.",
    "zeebe": "Back up Zeebe, verify and archive its backups.",
    "zookeeper": "Back up and restore ZooKeeper.",
}
"""Summaries of the groups: the first words of verbs with several words."""

SECTIONS: dict[str, tuple[str, ...]] = {
    "Begin": ("demo", "init", "check", "store"),
    "Back up and restore": ("kafka", "zookeeper", "app", "zeebe", "backup-set"),
    "Show and prove": ("list", "info", "status", "verify", "drill", "receipts", "sql"),
    "Keep and delete": ("prune", "hold", "release", "delete"),
    "Repair": ("repair", "unlock"),
}
"""Headings of `logkeep --help`."""
