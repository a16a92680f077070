"""Runs schedules by seed, judges what they left, and looks for the shortest one that still fails."""

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from logkeep.checkpoint.records import Kind, document_of
from logkeep.checkpoint.simulator import judge
from logkeep.checkpoint.simulator.judge import Judge, SendingFacts
from logkeep.checkpoint.simulator.plan import SchedulePlan, make_plan, shorter
from logkeep.checkpoint.simulator.restore_check import drained, restored_world
from logkeep.checkpoint.simulator.sim_log import Compacted
from logkeep.checkpoint.simulator.sim_repository import SimRepository
from logkeep.checkpoint.simulator.sim_store import SimDecision
from logkeep.checkpoint.simulator.sim_transport import SENDING
from logkeep.checkpoint.simulator.workload import SHOP, Workload
from logkeep.checkpoint.simulator.world import EPOCH, SimWorld
from logkeep.errors import LogkeepError

_MEMORY = "/dev/shm"  # noqa: S108 - a private directory is made in it
_MOST_SHORTENINGS = 150
_OLD_MESSAGES = 12
"""So many messages of the abandoned history still wait in the inboxes of a restored application."""


class SimFinding(msgspec.Struct, frozen=True):
    """What went wrong: `what` is one word for its kind."""

    what: str
    text: str


class ScheduleOutcome(msgspec.Struct, frozen=True):
    """Of one schedule: findings, and counts that say what it covered."""

    plan: SchedulePlan
    findings: tuple[SimFinding, ...]
    counts: dict[str, int]


class ScheduleTotals(msgspec.Struct):
    """Of many schedules."""

    schedules: int
    counts: dict[str, int]
    failed: list[ScheduleOutcome]


def run_plan(plan: SchedulePlan, workload: Workload = SHOP) -> ScheduleOutcome:
    if not plan.shipped:
        return _judged(SimWorld(plan, workload))
    with TemporaryDirectory(prefix="logkeep-simulate-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None) as folder:
        return _judged(SimWorld(plan, workload, repository=SimRepository(Path(folder), lambda: EPOCH)))


def _judged(world: SimWorld) -> ScheduleOutcome:
    plan, counts = world.plan, Counter[str]()
    try:
        world.run()
        findings = [*_ends(world), *_whole_run(world)]
        sendings = [SendingFacts(s.partition, s.known) for s in world.transport.sendings]
        by_sending = Judge([log.everything for log in world.logs], sendings, SENDING)
        for backup_id, decision in list(world.store.decisions.items()):
            counts["completed" if decision.receipts else "failed"] += 1
            if decision.receipts:
                findings += _backup(world, backup_id, decision, by_sending, counts)
            else:
                findings += _again(world, backup_id, "retaken")
    except (AssertionError, KeyError, IndexError, ValueError, Compacted, LogkeepError) as error:
        findings = [SimFinding("crash", f"{type(error).__name__}: {error}")]
    counts.update(world.counts)
    counts["forced"] += sum(
        r.kind == Kind.CREATE and b'"nonce":""' in r.value for log in world.logs for r in log.everything
    )
    counts["ticks"] = world.tick
    return ScheduleOutcome(plan, tuple(findings), dict(counts))


def _ends(world: SimWorld) -> list[SimFinding]:
    """Every request has an end, every checkpoint was asked for, and every pin was freed."""
    open_ids = world.store.requests.keys() - world.store.decisions.keys()
    found = [SimFinding("stuck", f"backup {each} has no end") for each in open_ids]
    made = {document_of(r).id for log in world.logs for r in log.everything if r.kind == Kind.CREATED}
    found += [SimFinding("foreign", f"checkpoint {i} was never asked for") for i in made - world.store.requests.keys()]
    pinning = [leader for leader in world.leaders if world.archive.pinned(leader)]
    found += [SimFinding("pin", f"partition {leader.partition} still pins its log") for leader in pinning]
    found += [SimFinding(*each) for each in world.wrong_ends]
    return found if world.quiet() else [*found, SimFinding("stuck", "messages wait forever")]


def _whole_run(world: SimWorld) -> list[SimFinding]:
    """What holds without any restore: the invariant, and each message once."""
    logs = [log.everything for log in world.logs]
    return _log_findings(logs) + _laws(world)


def _log_findings(logs: judge.Logs) -> list[SimFinding]:
    found = [SimFinding("twice", text) for text in judge.processed_twice(logs) + judge.results_twice(logs)]
    return found + [SimFinding("lost", text) for text in judge.lost(logs)]


def _laws(world: SimWorld) -> list[SimFinding]:
    state = {k: msgspec.msgpack.decode(v) for leader in world.leaders for k, v in leader.user.items()}
    return [SimFinding(world.workload.law, text) for text in world.workload.invariant(state)]


def _backup(
    world: SimWorld, backup_id: int, decision: SimDecision, by_sending: Judge, counts: Counter[str]
) -> list[SimFinding]:
    """One completed backup: its cut, what is inside, and what it becomes when it is restored."""
    logs = [log.everything for log in world.logs]
    cut = [receipt.copy.cut_end for receipt in decision.receipts]
    found = [SimFinding("orphan", text) for text in by_sending.orphans(cut)]
    found += _order(world, backup_id, cut)
    restored = restored_world(world, decision)
    for partition, log in enumerate(restored.logs):
        log.everything[: log.start] = logs[partition][: log.start]
    counts["with messages under way"] += bool(judge.lost([log.everything for log in restored.logs]))
    for receiver, message in world.transport.sent[-_OLD_MESSAGES:]:
        restored.transport.deliver(receiver, message)
    if not drained(restored):
        found.append(SimFinding("stuck", f"backup {backup_id} restored does not drain"))
    found += _again(restored, backup_id, "reused")
    found += _log_findings([log.everything for log in restored.logs]) + _laws(restored)
    return found


def _again(world: SimWorld, backup_id: int, what: str) -> list[SimFinding]:
    """An id of the store gives no second backup: not after it failed, and not after a restore."""
    before = dict(world.store.requests), dict(world.store.decisions)
    for _ in world.archive.coordinate(backup_id, "f" * 16):
        world.tick += 1
    world.archive.collect()
    same = before == (world.store.requests, world.store.decisions)
    return [] if same and not any(world.transport.inboxes) else [SimFinding(what, f"{backup_id} was taken again")]


def _order(world: SimWorld, backup_id: int, cut: list[int]) -> list[SimFinding]:
    """What was accepted before the request is inside; what came after the acknowledgement is not."""
    logs = [log.everything for log in world.logs]
    began, acknowledged = world.began.get(backup_id, -1), world.acknowledged.get(backup_id)
    found = []
    for request, at in world.submitted.items():
        if world.replied.get(request, world.tick) < began and not judge.inside(logs, cut, request):
            found.append(SimFinding("early", f"{request} was accepted before backup {backup_id} and is not in it"))
        if acknowledged is not None and at > acknowledged and judge.inside(logs, cut, request):
            found.append(SimFinding("late", f"{request} came after backup {backup_id} was acknowledged and is in it"))
    return found


def shorten(outcome: ScheduleOutcome, workload: Workload = SHOP) -> ScheduleOutcome:
    """The shortest plan found that fails in the same way."""
    what, left = outcome.findings[0].what, _MOST_SHORTENINGS
    progress = True
    while progress and left > 0:
        progress = False
        for plan in shorter(outcome.plan):
            left -= 1
            tried = run_plan(plan, workload)
            if any(found.what == what for found in tried.findings):
                outcome, progress = tried, True
                break
            if left <= 0:
                break
    return outcome


def run_seeds(seeds: Iterable[int], workload: Workload = SHOP, most_failures: int = 1) -> ScheduleTotals:
    """Run the schedules of these seeds, until this many have failed."""
    totals = ScheduleTotals(0, {}, [])
    counts: Counter[str] = Counter()
    for seed in seeds:
        outcome = run_plan(make_plan(seed), workload)
        totals.schedules += 1
        counts.update(outcome.counts)
        if outcome.findings:
            totals.failed.append(outcome)
            if len(totals.failed) >= most_failures:
                break
    totals.counts = dict(counts)
    return totals
