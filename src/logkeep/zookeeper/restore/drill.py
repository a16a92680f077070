"""A restore into a scratch directory, and a real server started on it: its whole tree must be the replayed one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from logkeep.errors import ServerRefused
from logkeep.model.findings import Finding, Severity
from logkeep.model.time import Clock, TokenSource
from logkeep.zookeeper.restore.prepare import PreparedRestore
from logkeep.zookeeper.restore.run import carry_out
from logkeep.zookeeper.restore.values import RestoreReceipt
from logkeep.zookeeper.verify.boot import Boot, refused_words, tree_differences

_MOST_TOLD = 20
_DO_NOT_USE = "do not rely on this backup before this is understood; `logkeep verify --level replay` looks closer"


@dataclass(frozen=True)
class Drilled:
    receipt: RestoreReceipt
    nodes: int
    """That the server has."""
    findings: tuple[Finding, ...]
    """What differs; nothing when it is the same tree."""


def drill(
    prepared: PreparedRestore, data_dir: Path, boot: Boot, journal: str, clock: Clock, tokens: TokenSource
) -> Drilled:
    """Raises what the restore raises, and what keeps a server from being started or asked. One that ends by itself on
    the result is a finding."""
    receipt = carry_out(prepared, clock=clock, token=tokens, name=journal)
    try:
        with boot(data_dir) as server:
            live = {node.path: node for node in server.nodes()}
    except ServerRefused as error:
        return Drilled(receipt, 0, (_finding("boot-failed", refused_words(error)),))
    return Drilled(receipt, len(live), told(list(tree_differences(prepared.replayed.tree, live))))


def told(differences: Sequence[str]) -> tuple[Finding, ...]:
    found = [_finding("boot-differs", what) for what in differences[:_MOST_TOLD]]
    if len(differences) > _MOST_TOLD:
        found.append(_finding("boot-differs", f"and {len(differences) - _MOST_TOLD} nodes more differ"))
    return tuple(found)


def _finding(code: str, what: str) -> Finding:
    return Finding(code=code, severity=Severity.DAMAGE, where="drill", what=what, remedy=_DO_NOT_USE)
