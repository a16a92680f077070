"""A drill: restore into a scratch directory, start a real server on it, compare its tree with the replayed one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from logkeep.errors import ServerRefused
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import plural
from logkeep.model.time import Clock, TokenSource
from logkeep.zookeeper.restore.prepare import PreparedRestore
from logkeep.zookeeper.restore.run import carry_out
from logkeep.zookeeper.restore.values import RestoreReceipt
from logkeep.zookeeper.verify.boot import Boot, refused_words, tree_differences

_MAX_FINDINGS = 20
_DO_NOT_USE = "do not rely on this backup before this is understood; `logkeep verify --level replay` checks more"


@dataclass(frozen=True)
class DrillOutcome:
    receipt: RestoreReceipt
    nodes: int
    """In the server's tree."""
    findings: tuple[Finding, ...]
    """The differences; empty when both trees are equal."""


def drill(
    prepared: PreparedRestore, data_dir: Path, boot: Boot, journal: str, clock: Clock, tokens: TokenSource
) -> DrillOutcome:
    """Raises what the restore raises, and errors of starting or asking the server. A server that exits by itself on
    the restored data is a finding."""
    receipt = carry_out(prepared, clock=clock, token=tokens, name=journal)
    try:
        with boot(data_dir) as server:
            live = {node.path: node for node in server.nodes()}
    except ServerRefused as error:
        return DrillOutcome(receipt, 0, (_finding("boot-failed", refused_words(error)),))
    return DrillOutcome(receipt, len(live), tuple(_findings(list(tree_differences(prepared.replayed.tree, live)))))


def _findings(differences: Sequence[str]) -> Iterator[Finding]:
    for what in differences[:_MAX_FINDINGS]:
        yield _finding("boot-differs", what)
    if len(differences) > _MAX_FINDINGS:
        more = plural(len(differences) - _MAX_FINDINGS, "node more differs", "nodes more differ")
        yield _finding("boot-differs", f"and {more}")


def _finding(code: str, what: str) -> Finding:
    return Finding(code=code, severity=Severity.DAMAGE, where="drill", what=what, remedy=_DO_NOT_USE)
