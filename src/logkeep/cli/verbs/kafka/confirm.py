"""The question before a restore, into a running cluster or into files: the plan is shown first.

Where --yes answers it, the plan is shown all the same, before the work begins: a log without it tells half the story.
"""

from logkeep.cli.frame.execute import Run
from logkeep.cli.verbs.kafka.restore_report import KafkaRestoreReport, plan_lines
from logkeep.config.options import CONFIRM_CLUSTER, JSON, QUIET, YES
from logkeep.errors import TargetUnsafe

_OWN = "this is the cluster that the backup was taken of"


def ask(run: Run, planned: KafkaRestoreReport, question: str, own_cluster: str) -> None:
    """Raises Declined. The cluster that was backed up takes more than a yes: its id, typed, or as an option.

    `own_cluster` is that id when it is the target, else empty.
    """
    if run.console.interactive and not run[YES]:
        run.console.note("\n".join(plan_lines(planned, run.console.err_look)))
    if not own_cluster or run[CONFIRM_CLUSTER] == own_cluster:
        run.confirm(question)
        _log(run, planned)
        return
    if run[YES] or not run.console.interactive:
        raise TargetUnsafe(
            _OWN, subject=own_cluster, remedy=f"if that is meant, say so with --confirm-cluster {own_cluster}"
        )
    run.console.confirm(f"{_OWN}; {question}", typed=own_cluster)


def _log(run: Run, planned: KafkaRestoreReport) -> None:
    """Where nobody was asked, the plan is for whoever reads the log of this run later; with --json it is not text."""
    if run[YES] and not run[QUIET] and not run[JSON]:
        run.console.note("\n".join(plan_lines(planned, run.console.err_look)))
