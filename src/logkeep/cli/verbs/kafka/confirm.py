"""The confirmation before a restore, into a running cluster or into files. The plan is shown first.

With --yes the plan is printed too, so that a log of the run has it.
"""

from logkeep.cli.frame.execute import Run
from logkeep.cli.verbs.kafka.restore_report import KafkaRestoreReport, plan_lines
from logkeep.config.options import CONFIRM_CLUSTER, JSON, QUIET, YES
from logkeep.errors import TargetUnsafe

_OWN = "this is the cluster that was backed up"


def ask(run: Run, planned: KafkaRestoreReport, question: str, own_cluster: str) -> None:
    """Raises Declined. If the target is the cluster that was backed up, its id must be typed or given as an option.

    `own_cluster` is that id when it is the target, else empty.
    """
    if run.console.interactive and not run[YES]:
        run.console.note("\n".join(plan_lines(planned, run.console.err_look)))
    if not own_cluster or run[CONFIRM_CLUSTER] == own_cluster:
        run.confirm(question)
        _print_plan(run, planned)
        return
    if run[YES] or not run.console.interactive:
        raise TargetUnsafe(
            _OWN, subject=own_cluster, remedy=f"if this is intended, pass --confirm-cluster {own_cluster}"
        )
    run.console.confirm(f"{_OWN}; {question}", typed=own_cluster)


def _print_plan(run: Run, planned: KafkaRestoreReport) -> None:
    """With --yes the plan is for later readers of the log; with --json there is no text."""
    if run[YES] and not run[QUIET] and not run[JSON]:
        run.console.note("\n".join(plan_lines(planned, run.console.err_look)))
