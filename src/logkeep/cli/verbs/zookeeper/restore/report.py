"""The report of `logkeep zookeeper restore`: the plan, the result, and the next steps."""

from collections.abc import Iterator
from typing import Final

import msgspec

from logkeep.cli.terminal.text import TerminalStyle, count, plural, size
from logkeep.cli.verbs.restore_text import finding_lines, took
from logkeep.errors import RestoreFailed
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.findings import Finding
from logkeep.model.shell_words import shell_word
from logkeep.zookeeper.restore.ensemble.documents import AgreedPlan
from logkeep.zookeeper.restore.ensemble.plan import Agreement
from logkeep.zookeeper.restore.next_steps import next_steps
from logkeep.zookeeper.restore.prepare import PreparedRestore
from logkeep.zookeeper.restore.values import RestoreReceipt, ZooKeeperRestorePlan

NOT_BEGUN: Final = "not-begun"
"""The verdict of a --continue that found nothing to continue: the earlier data is in place."""


class RestoredFile(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    size: int
    sha256: str


class RestoreTarget(msgspec.Struct, frozen=True, kw_only=True):
    data_dir: str
    log_dir: str
    snapshots: int
    """Before the restore."""
    logs: int
    highest_zxid: str
    """Before the restore; servers will start above it, unless the original files are restored."""
    files: tuple[RestoredFile, ...] = ()
    kept: tuple[str, ...] = ()
    """Directories with the earlier data."""


class RestoredTree(msgspec.Struct, frozen=True, kw_only=True):
    zxid: str
    """The last transaction in the tree."""
    time_ms: int | None
    next_left_out: str | None
    """The first transaction that is not in it, with its time; null where nothing later is archived."""
    named_zxid: str
    """The zxid that servers will report when they start."""
    epoch: int | None
    sessions: str
    form: str
    proof: str
    labels: tuple[str, ...]
    """What weakens the proof."""
    nodes: int
    bytes: int
    transactions: int
    digests_compared: int
    dropped_sessions: int
    dropped_ephemerals: int


class ZooKeeperRestoreReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str | None
    backup: int | None
    restore: int | None
    """The id for `logkeep receipts show`; null on a dry run, or when it cannot be found."""
    journal: str | None
    """The name of the restore in the journal of the directories."""
    verdict: str
    """`planned`, `proven`, `unproven`; `continued`, `not-begun` or `rolled-back` with --continue and --rollback."""
    tree: RestoredTree | None
    targets: tuple[RestoreTarget, ...]
    findings: tuple[Finding, ...]
    unchecked: tuple[str, ...]
    """Checks for running servers that were not possible."""
    refusals: tuple[str, ...]
    refusal_code: int = 0
    """The exit code of a run."""
    data_dirs: tuple[str, ...] = ()
    """With --continue and --rollback: directories of the restored servers."""
    kept: tuple[str, ...] = ()
    """With --continue and --rollback: directories that hold the other data."""
    next_steps: tuple[str, ...] = ()
    """What the operator does next."""
    seconds: float = 0.0
    dry_run: bool


def exit_code_of(report: ZooKeeperRestoreReport) -> int:
    """2 for a tree that digests contradict; 30 where --continue found nothing to continue."""
    if report.verdict == NOT_BEGUN:
        return RestoreFailed.exit_code
    disproven = any(finding.code == "digest-mismatch" for finding in report.findings)
    return report.refusal_code or (2 if disproven and not report.dry_run else 0)


def tree_of(prepared: PreparedRestore) -> RestoredTree:
    planned = prepared.planned
    return _tree(prepared, planned, planned.named, planned.size_bytes)


def tree_of_all(agreed: Agreement) -> RestoredTree:
    """What every member of an ensemble gets."""
    return _tree(agreed, agreed.plan, agreed.plan.named_zxid, agreed.size_bytes)


def _tree(
    of: PreparedRestore | Agreement, planned: ZooKeeperRestorePlan | AgreedPlan, named: int, size_bytes: int
) -> RestoredTree:
    path, replayed, dropped = of.path, of.replayed, of.dropped
    return RestoredTree(
        zxid=hex_zxid(planned.zxid),
        time_ms=path.last_restored.time_ms,
        next_left_out=None if path.next_left_out is None else str(path.next_left_out),
        named_zxid=hex_zxid(named),
        epoch=planned.epoch,
        sessions=planned.sessions,
        form=planned.form,
        proof=path.proof,
        labels=path.labels,
        nodes=planned.nodes,
        bytes=size_bytes,
        transactions=replayed.transactions,
        digests_compared=replayed.digests_compared,
        dropped_sessions=dropped.sessions,
        dropped_ephemerals=dropped.ephemerals,
    )


def targets_of(prepared: PreparedRestore, receipt: RestoreReceipt | None = None) -> Iterator[RestoreTarget]:
    done = receipt.targets if receipt is not None else (None,) * len(prepared.places)
    for place, held, target in zip(prepared.places, prepared.planned.held, done, strict=True):
        files = target.files if target is not None else ()
        yield RestoreTarget(
            data_dir=str(place.data_dir),
            log_dir=str(place.log_dir),
            snapshots=held.snapshots,
            logs=held.logs,
            highest_zxid=hex_zxid(held.highest_zxid),
            files=tuple(RestoredFile(name=f.name, size=f.size_bytes, sha256=f.sha256) for f in files),
            kept=target.kept if target is not None else (),
        )


def restore_text(report: ZooKeeperRestoreReport, look: TerminalStyle) -> str:
    if report.tree is None:
        return "\n".join(_ended_lines(report, look))
    if report.dry_run:
        return plan_text(report, look)
    head = f"{look.state('OK')}  restore {report.restore} of backup {report.backup}: {report.verdict}"
    lines = [head, *tree_lines(report.tree, look), look.line(f"took {took(report.seconds)}")]
    lines += [look.prose(f"NOT CHECKED  {what}", indent=13) for what in report.unchecked]
    lines += finding_lines(report.findings, look, every=True)
    return "\n".join([*lines, "", *(_step(step, look) for step in report.next_steps)])


def _step(step: str, look: TerminalStyle) -> str:
    """Commands stay on one line, so that they can be copied."""
    return look.line(step) if "  logkeep " in step else look.prose(step, indent=2)


def plan_text(report: ZooKeeperRestoreReport, look: TerminalStyle) -> str:
    return "\n".join(_plan_lines(report, look))


def _plan_lines(report: ZooKeeperRestoreReport, look: TerminalStyle) -> Iterator[str]:
    yield look.line(f"restore of backup {report.backup} of {report.source}")
    if report.tree is not None:
        yield from tree_lines(report.tree, look)
    for target in report.targets:
        held = f"{plural(target.snapshots, 'snapshot')} and {plural(target.logs, 'log')}, up to {target.highest_zxid}"
        there = f"replaces {held}; kept beside it" if target.snapshots or target.logs else "holds nothing"
        yield look.prose(f"{target.data_dir}: {there}", indent=2)
    for what in report.unchecked:
        yield look.prose(f"NOT CHECKED  {what}", indent=13)
    yield from finding_lines(report.findings, look, every=True)
    for refusal in report.refusals:
        yield look.prose(f"REFUSED {refusal}", indent=len("REFUSED "))


def tree_lines(tree: RestoredTree, look: TerminalStyle) -> Iterator[str]:
    proof = ", ".join([tree.proof, *tree.labels])
    facts = {
        "tree at": f"{tree.zxid} ({proof})",
        "left out": f"{tree.next_left_out} and all that is later" if tree.next_left_out else "",
        "nodes": f"{count(tree.nodes)}, {size(tree.bytes)}, sessions: {tree.sessions}",
        "replayed": f"{plural(tree.transactions, 'transaction')}, {plural(tree.digests_compared, 'digest')} compared",
        "dropped": f"{plural(tree.dropped_sessions, 'session')}, {plural(tree.dropped_ephemerals, 'ephemeral node')}"
        if tree.dropped_sessions
        else "",
        "starts at": tree.named_zxid,
        "epoch": str(tree.epoch) if tree.epoch is not None else "",
    }
    yield look.pairs({name: value for name, value in facts.items() if value})


def steps_after(receipt: RestoreReceipt, restore: int) -> Iterator[str]:
    """The next steps of the operator."""
    yield from next_steps(receipt)
    directory = shell_word(receipt.targets[0].data_dir)
    yield f"to undo it, stop the servers:  logkeep zookeeper restore --rollback --data-dir {directory}"
    yield f"receipt:  logkeep receipts show {restore}"


def _ended_lines(report: ZooKeeperRestoreReport, look: TerminalStyle) -> Iterator[str]:
    texts = {
        "continued": "the restored data is in place",
        NOT_BEGUN: "nothing was restored; run the restore again",
        "rolled-back": "the earlier data is back in place",
    }
    state = look.state("FAIL" if report.verdict == NOT_BEGUN else "OK")
    yield look.line(f"{state}  restore {report.journal}: {texts.get(report.verdict, report.verdict)}")
    yield from (look.line(f"  {path}") for path in report.data_dirs)
    yield from (look.line(f"kept beside it: {path}") for path in report.kept)
    yield from (look.prose(f"NOT CHECKED  {what}", indent=13) for what in report.unchecked)
    yield from finding_lines(report.findings, look, every=True)
    yield from (_step(step, look) for step in report.next_steps)
