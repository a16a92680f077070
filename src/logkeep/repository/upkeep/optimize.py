"""Merges the small segments of frequent backups.

lease → rows of all backups → runs (pure) → merged objects in tasks → one `replace` commit. Old objects become garbage,
which `prune` collects after its usual age. The kind of source provides the task that merges, as a `MergeWay`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import msgspec

from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import Segment
from logkeep.model.time import Clock, TokenSource
from logkeep.model.work import EngineFor, Task
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import Folded
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.merge_plan import Kin, MergeRule, Run, plan_merges
from logkeep.repository.upkeep.replace import ServedRows, replace_rows, served_rows


@dataclass(frozen=True)
class MergeUnit:
    """Rows of one log that follow each other."""

    place: SourceRef
    inputs: tuple[Segment, ...]

    @property
    def size_bytes(self) -> int:
        return sum(s.stored_bytes for s in self.inputs)


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """The new object, or what is wrong with its pieces; neither if they should not be merged."""

    segment: Segment | None = None
    problem: str = ""
    where: str = ""


@dataclass(frozen=True)
class MergeWay:
    """How a kind of source merges its logs."""

    task: Task[MergeUnit, Merged]
    kin: Callable[[SourceRef, Folded], Kin]
    """Called once per run, under its lease."""
    proof: str
    """How the task proves that only the objects have changed."""


@dataclass(frozen=True)
class Optimized:
    """The result: the number of objects before and after."""

    objects_before: int
    objects_after: int
    size_bytes: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Optimizing:
    """Everything a merge needs besides its rule."""

    place: SourceRef
    way: MergeWay
    clock: Clock
    tokens: TokenSource
    lease_ttl: timedelta = timedelta(minutes=5)

    def preview(self, rule: MergeRule) -> Optimized:
        """What a run would merge. Writes nothing."""
        folded = read_chain(self.place)
        runs = self._runs(folded, served_rows(self.place, folded), rule)
        return _optimized(runs, len(runs), ())

    def run(self, rule: MergeRule, engine_for: EngineFor) -> Optimized:
        """Merge. Interrupted anywhere, every backup is read from the old objects or from the new ones."""
        with writing(self.place, "optimize", self.clock, self.tokens, self.lease_ttl) as session:
            served = served_rows(self.place, session.folded)
            units = [MergeUnit(self.place, run) for run in self._runs(session.folded, served, rule)]
            engine = engine_for(sum(u.size_bytes for u in units))
            results = engine.map(self.way.task, units, Merged, label="merge", weight=lambda u: u.size_bytes)
            done = [(u.inputs, r.segment) for u, r in zip(units, results, strict=True) if r.segment is not None]
            if done:
                old, new = [s for run, _ in done for s in run], [segment for _, segment in done]
                replace_rows(session, served, old, new, self.way.proof)
        return _optimized([run for run, _ in done], len(done), tuple(_finding(r) for r in results if r.problem))

    def _runs(self, folded: Folded, served: ServedRows, rule: MergeRule) -> list[Run]:
        return plan_merges(served.rows(rule.target_bytes), served.starts, rule, self.way.kin(self.place, folded))


def _optimized(runs: list[Run], after: int, findings: tuple[Finding, ...]) -> Optimized:
    inputs: list[Segment] = [s for run in runs for s in run if s.has_object]
    return Optimized(len(inputs), after, sum(s.stored_bytes for s in inputs), findings)


def _finding(result: Merged) -> Finding:
    return Finding(
        code="not-merged",
        severity=Severity.DAMAGE,
        where=result.where,
        what=f"it was not merged: {result.problem}",
        remedy="run `logkeep verify --level data`",
    )
