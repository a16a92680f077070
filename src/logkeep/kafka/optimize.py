"""Merging the small segments that frequent backups leave, as a list of steps.

lease → rows of all kept backups → runs (pure) → merged objects in tasks → one `replace` commit. Old objects become
garbage, which `prune` collects after its usual age.
"""

from dataclasses import dataclass
from datetime import timedelta

from logkeep.kafka.merge import Merged, MergeUnit, merge_segments
from logkeep.kafka.merge_plan import MergeRule, Run, plan_merges
from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import Segment
from logkeep.model.time import Clock, TokenSource
from logkeep.model.work import EngineFor
from logkeep.repository.chain import Place, read_chain
from logkeep.repository.fold import Folded
from logkeep.repository.replacing import Served, replace_rows, served_rows
from logkeep.repository.writing import writing

_PROOF = "the same batches end to end; the SHA-256 of every input, and the CRC-32C of every batch, proven while reading"


@dataclass(frozen=True)
class Optimized:
    """What became smaller in number."""

    objects_before: int
    objects_after: int
    size_bytes: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Optimizing:
    """Everything a merge needs besides its rule."""

    place: Place
    clock: Clock
    tokens: TokenSource
    lease_ttl: timedelta = timedelta(minutes=5)

    def preview(self, rule: MergeRule) -> Optimized:
        """What a run would merge now. Writes nothing."""
        runs = _runs(self._served(read_chain(self.place)), rule)
        return _optimized(runs, len(runs), ())

    def run(self, rule: MergeRule, engine_for: EngineFor) -> Optimized:
        """Merge. Killed anywhere, every backup is served by the old objects or by the new ones."""
        with writing(self.place, "optimize", self.clock, self.tokens, self.lease_ttl) as session:
            served = self._served(session.folded)
            units = [MergeUnit(self.place, run) for run in _runs(served, rule)]
            engine = engine_for(sum(u.size_bytes for u in units))
            results = engine.map(merge_segments, units, Merged, label="merge", weight=lambda u: u.size_bytes)
            done = [(u.inputs, r.segment) for u, r in zip(units, results, strict=True) if r.segment is not None]
            if done:
                replace_rows(session, served, [s for run, _ in done for s in run], [new for _, new in done], _PROOF)
        return _optimized([run for run, _ in done], len(done), tuple(_finding(r) for r in results if r.problem))

    def _served(self, folded: Folded) -> Served:
        return served_rows(self.place, folded)


def _runs(served: Served, rule: MergeRule) -> list[Run]:
    return plan_merges(served.rows(rule.target_bytes), served.starts, rule)


def _optimized(runs: list[Run], after: int, findings: tuple[Finding, ...]) -> Optimized:
    inputs: list[Segment] = [s for run in runs for s in run if s.has_object]
    return Optimized(len(inputs), after, sum(s.stored_bytes for s in inputs), findings)


def _finding(result: Merged) -> Finding:
    return Finding(
        code="not-merged",
        severity=Severity.DAMAGE,
        where=result.where,
        what=f"it was left as it is: {result.problem}",
        remedy="run `logkeep verify --level data`",
    )
