"""All verbs of `logkeep`, with the module of each.

To add a verb: write it (see the docstring of `logkeep.cli`), add its line here, run `make reference`.
The summary is the first line of the verb's docstring, repeated here so that `logkeep --help` loads no verb; a test
keeps the two equal.
"""

from logkeep.cli.frame.command_groups import CommandEntry
from logkeep.cli.frame.verb import Verb


class VerbEntry(CommandEntry):
    """One verb of `logkeep`."""

    def load(self) -> Verb:
        found = super().load()
        if not isinstance(found, Verb):
            raise TypeError(f"{self.where} is not a verb")
        return found


VERBS: tuple[VerbEntry, ...] = (
    VerbEntry("init", "logkeep.cli.verbs.init:init", "Create a repository."),
    VerbEntry(
        "check",
        "logkeep.cli.verbs.init:check",
        "Look whether configuration, store and repository are fit for the next run.",
    ),
    VerbEntry("list", "logkeep.cli.verbs.list:list_backups", "List all backups, oldest first."),
    VerbEntry(
        "info",
        "logkeep.cli.verbs.info:info",
        "Show what is in a backup: its logs, ranges, sizes, gaps, findings.",
    ),
    VerbEntry(
        "verify",
        "logkeep.cli.verbs.verify:verify",
        "Check a backup against what was written, and name every object that is not right.",
    ),
    VerbEntry(
        "drill",
        "logkeep.cli.verbs.drill:drill",
        "Restore a backup to where it does no harm, prove it, clean up, and tell how long that took.",
    ),
    VerbEntry(
        "status",
        "logkeep.cli.verbs.status:status",
        "Tell whether each source has a good backup that is young enough, what runs and what was left behind.",
    ),
    VerbEntry("delete", "logkeep.cli.verbs.prune:delete", "Delete backups by id."),
    VerbEntry(
        "prune",
        "logkeep.cli.verbs.prune:prune",
        "Delete the backups that the policy does not keep, and free space.",
    ),
    VerbEntry(
        "hold",
        "logkeep.cli.verbs.hold:hold",
        "Hold a backup: no policy and no delete removes it until it is released.",
    ),
    VerbEntry("release", "logkeep.cli.verbs.hold:release", "Release a held backup: policies decide over it again."),
    VerbEntry("unlock", "logkeep.cli.verbs.repair:unlock", "Take the lease away from a run that is gone."),
    VerbEntry(
        "repair",
        "logkeep.cli.verbs.repair:repair",
        "Rebuild what can be rebuilt: checkpoints, the second format object, a source's document, a broken lease.",
    ),
    VerbEntry(
        "demo",
        "logkeep.cli.verbs.demo:demo",
        "Show the whole tool against real servers that it starts and stops itself.",
    ),
    VerbEntry(
        "kafka backup",
        "logkeep.cli.verbs.kafka.backup:backup",
        "Back up a Kafka cluster: its logs byte for byte, topics, groups, ACLs, quotas.",
    ),
    VerbEntry(
        "kafka restore",
        "logkeep.cli.verbs.kafka.restore:restore",
        "Put a backup back into a Kafka cluster: records, configs, groups, and a proof.",
    ),
    VerbEntry(
        "kafka restore abort",
        "logkeep.cli.verbs.kafka.restore_abort:abort",
        "Give a restore up: topics that it made are deleted, others get their configs back.",
    ),
    VerbEntry(
        "kafka groups",
        "logkeep.cli.verbs.kafka.groups:groups",
        "Tell where groups stood, also in topics that were deleted since, from archived internal topics.",
    ),
    VerbEntry(
        "kafka groups restore",
        "logkeep.cli.verbs.kafka.groups_restore:restore",
        "Put groups where they stood, in the cluster that their records were restored to.",
    ),
    VerbEntry(
        "kafka groups rollback",
        "logkeep.cli.verbs.kafka.groups_restore:rollback",
        "Put groups back to where they stood before a restore moved them.",
    ),
    VerbEntry(
        "kafka salvage",
        "logkeep.cli.verbs.kafka.salvage:salvage",
        "Back up a Kafka cluster from the disks of its brokers, when they run no more.",
    ),
    VerbEntry(
        "kafka optimize",
        "logkeep.cli.verbs.kafka.optimize:optimize",
        "Merge the small objects of frequent backups into larger ones, for all backups at once.",
    ),
    VerbEntry(
        "zookeeper backup",
        "logkeep.cli.verbs.zookeeper.backup:backup",
        "Back up ZooKeeper from the files of one server or of several, while they run.",
    ),
    VerbEntry(
        "zookeeper restore",
        "logkeep.cli.verbs.zookeeper.restore.verb:restore",
        "Put the tree of a backup in place of the data of servers that are stopped.",
    ),
    VerbEntry(
        "zookeeper restore survey",
        "logkeep.cli.verbs.zookeeper.restore.survey:survey",
        "Write down how far the servers on this host got, for one plan for all members of an ensemble.",
    ),
    VerbEntry(
        "zookeeper restore plan",
        "logkeep.cli.verbs.zookeeper.restore.plan:plan",
        "Make one plan for all members of an ensemble, out of the surveys of their hosts.",
    ),
    VerbEntry(
        "zookeeper restore-subtree",
        "logkeep.cli.verbs.zookeeper.restore.subtree:restore_subtree",
        "Put one subtree of a backup into an ensemble that runs.",
    ),
    VerbEntry(
        "zookeeper optimize",
        "logkeep.cli.verbs.zookeeper.optimize:optimize",
        "Merge the small objects of frequent backups into larger ones, for all backups at once.",
    ),
    VerbEntry(
        "zookeeper export",
        "logkeep.cli.verbs.zookeeper.convert:export",
        "Write one member's files of a backup as a bundle, which `zkbackup` reads.",
    ),
    VerbEntry(
        "zookeeper import",
        "logkeep.cli.verbs.zookeeper.convert:import_",
        "Take a bundle into a repository, as the next backup of its source.",
    ),
    VerbEntry(
        "zookeeper repair",
        "logkeep.cli.verbs.zookeeper.repair:repair",
        "Mend a backup of which objects are damaged, as far as that can honestly be done.",
    ),
    VerbEntry(
        "zookeeper history",
        "logkeep.cli.verbs.zookeeper.history:history",
        "Tell who made, changed and deleted a znode, and when, from archived transactions.",
    ),
    VerbEntry(
        "zookeeper diff",
        "logkeep.cli.verbs.zookeeper.diff:diff",
        "Tell how two archived trees differ: two backups, two transactions, two members.",
    ),
    VerbEntry(
        "zookeeper log",
        "logkeep.cli.verbs.zookeeper.log:log",
        "Ask archived transactions anything, in SQL.",
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
        "store probe", "logkeep.cli.verbs.store:probe", "Try out what a store can do and tell it in plain words."
    ),
    VerbEntry("completion", "logkeep.cli.verbs.completion:completion", "Print the completion script for a shell."),
    VerbEntry("version", "logkeep.cli.verbs.version:version", "Print the version of Logkeep and what it runs on."),
)

GROUPS: dict[str, str] = {
    "config": "Look at the configuration.",
    "kafka": "Back up and restore Kafka clusters.",
    "receipts": "Look at restores and drills, and at what they proved.",
    "store": "Look at object stores.",
    "zookeeper": "Back up and restore ZooKeeper.",
}
"""Summaries of the groups that the first words of two-word verbs make."""
