"""`logkeep zookeeper restore --plan`: the last of three steps that restore an ensemble on several hosts."""

from dataclasses import replace

from logkeep.cli.frame.execute import Run
from logkeep.config.options import (
    ACCEPT_MISMATCH,
    BELIEVE,
    ENSEMBLE,
    FORM,
    MIN_EPOCH,
    RESTORE_PLAN,
    SESSIONS,
    SOURCE,
    TO_TIME,
    TO_ZXID,
    Options,
)
from logkeep.errors import UsageError
from logkeep.zookeeper.restore.ensemble.documents import AgreedPlan, read_document
from logkeep.zookeeper.restore.values import ZooKeeperRestoreOptions

_PLANNED: Options = (TO_ZXID, TO_TIME, SESSIONS, FORM, ENSEMBLE, MIN_EPOCH, BELIEVE, ACCEPT_MISMATCH)
"""Options that a plan already determines."""


def agreed_in(run: Run, backup: str | None) -> AgreedPlan | None:
    """The plan of --plan. Raises UsageError for options that it determines, and for another backup."""
    path, source = run[RESTORE_PLAN], run[SOURCE]
    if path is None:
        return None
    agreed = read_document(path, AgreedPlan)
    given = [option for option in _PLANNED if run.settings[option] != option.default]
    if given:
        named = ", ".join(f"--{option.name}" for option in given)
        what = f"the plan already determines {named}"
        raise UsageError(what, subject=str(path), remedy=f"leave {named} out, or make another plan")
    if backup not in (None, agreed.backup):
        what = f"the plan is for backup {agreed.backup}"
        raise UsageError(what, subject=backup, remedy="leave the id out, or make a plan for this one")
    if source not in (None, agreed.source):
        what = f"the plan is for source {agreed.source}"
        raise UsageError(what, subject=source, remedy="leave --source out, or make a plan for this one")
    return agreed


def as_agreed(options: ZooKeeperRestoreOptions, agreed: AgreedPlan) -> ZooKeeperRestoreOptions:
    """For the members on this host."""
    return replace(
        options,
        ensemble=True,
        sessions=agreed.sessions,
        form=agreed.form,
        believe=agreed.believe,
        accept_mismatch=agreed.accept_mismatch,
    )
