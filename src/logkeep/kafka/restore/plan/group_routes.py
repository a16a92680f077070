"""Where the records of a backup are in a cluster now: by the map of a restore, or at their own offsets. Pure.

A map is only as good as the log it was made for. A target that is another cluster, or holds less than was restored,
is refused: positions in it would mean something else.
"""

from collections.abc import Iterable, Mapping

from logkeep.errors import Damaged, TargetUnsafe
from logkeep.formats.run_map.runs import RunMap
from logkeep.formats.run_map.stored import Route
from logkeep.kafka.admin.offsets import LogBounds
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.restore.facts.units import Offsets, ReplayOutcome
from logkeep.kafka.restore.plan.group_offsets import Kept, Moved, Routes
from logkeep.kafka.restore.plan.selection import ChosenLog
from logkeep.repository.restores.documents import RestoredPartition

Bounds = Mapping[TopicPartition, LogBounds]


def targets_of(partitions: Iterable[RestoredPartition]) -> set[TopicPartition]:
    return {TopicPartition(p.topic, p.partition) for p in partitions}


def routes_by_map(
    partitions: Iterable[RestoredPartition], maps: Mapping[Route, RunMap], bounds: Bounds
) -> dict[TopicPartition, list[Moved | Kept]]:
    """Of what a restore brought back whole. Raises TargetUnsafe, and Damaged when a map is missing."""
    routes: dict[TopicPartition, list[Moved | Kept]] = {}
    for each in partitions:
        if each.outcome == ReplayOutcome.DONE:
            source, target = TopicPartition(each.source_topic, each.source_partition), _target(each)
            places = routes.setdefault(source, [])
            if target in bounds:
                places.append(_place(each, maps, bounds[target]))
    return routes


def _target(each: RestoredPartition) -> TopicPartition:
    return TopicPartition(each.topic, each.partition)


def _place(each: RestoredPartition, maps: Mapping[Route, RunMap], now: LogBounds) -> Moved | Kept:
    target = _target(each)
    if now.high_watermark < each.end:
        raise TargetUnsafe(
            f"ends at offset {now.high_watermark}, and the restore wrote up to {each.end}: it was made again since",
            subject=str(target),
            remedy="restore its records first, then the groups of that restore",
        )
    if each.mode == Offsets.PRESERVE:
        return Kept(target, min(now.start, each.end), each.end)
    route = Route(each.source_topic, each.source_partition, each.topic, each.partition)
    if route not in maps:
        raise Damaged("the map of the restore says nothing of this partition", subject=str(target))
    return Moved(target, maps[route])


def routes_as_they_are(logs: Iterable[ChosenLog], bounds: Bounds) -> Routes:
    """Records at their own offsets, as far as the target's logs reach."""
    return {
        log.source: [Kept(log.target, now.start, now.high_watermark)] if (now := bounds.get(log.target)) else []
        for log in logs
    }
