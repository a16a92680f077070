"""Finds the records of a backup in a cluster: by the offset map of a restore, or at their own offsets. Pure.

An offset map is valid only for the log it was made for. A target that holds less than was restored is refused, because
offsets in it have another meaning.
"""

from collections.abc import Iterable, Mapping

from logkeep.errors import Damaged, TargetUnsafe
from logkeep.formats.run_map.file_format import Route
from logkeep.formats.run_map.runs import RunMap
from logkeep.kafka.admin.offsets import LogBounds
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.restore.facts.units import Offsets, ReplayOutcome
from logkeep.kafka.restore.plan.group_offsets import MappedLog, RestoredLog, Routes, UnchangedLog
from logkeep.kafka.restore.plan.selection import ChosenLog
from logkeep.repository.restores.documents import RestoredPartition

Bounds = Mapping[TopicPartition, LogBounds]


def targets_of(partitions: Iterable[RestoredPartition]) -> set[TopicPartition]:
    return {TopicPartition(p.topic, p.partition) for p in partitions}


def routes_by_map(
    partitions: Iterable[RestoredPartition], maps: Mapping[Route, RunMap], bounds: Bounds
) -> dict[TopicPartition, list[RestoredLog]]:
    """Routes of completely restored partitions. Raises TargetUnsafe, and Damaged when a map is missing."""
    routes: dict[TopicPartition, list[RestoredLog]] = {}
    for each in partitions:
        if each.outcome == ReplayOutcome.DONE:
            source, target = TopicPartition(each.source_topic, each.source_partition), _target(each)
            places = routes.setdefault(source, [])
            if target in bounds:
                places.append(_place(each, maps, bounds[target]))
    return routes


def _target(each: RestoredPartition) -> TopicPartition:
    return TopicPartition(each.topic, each.partition)


def _place(each: RestoredPartition, maps: Mapping[Route, RunMap], now: LogBounds) -> RestoredLog:
    target = _target(each)
    if now.high_watermark < each.end:
        raise TargetUnsafe(
            f"ends at offset {now.high_watermark}, and the restore wrote up to {each.end}: the topic was recreated",
            subject=str(target),
            remedy="restore its records first, then the groups with that restore",
        )
    if each.mode == Offsets.PRESERVE:
        return UnchangedLog(target, min(now.start, each.end), each.end)
    route = Route(each.source_topic, each.source_partition, each.topic, each.partition)
    if route not in maps:
        raise Damaged("the offset map of the restore lacks this partition", subject=str(target))
    return MappedLog(target, maps[route])


def routes_as_they_are(logs: Iterable[ChosenLog], bounds: Bounds) -> Routes:
    """Records at their own offsets, within the bounds of the target's logs."""
    return {
        log.source: [UnchangedLog(log.target, now.start, now.high_watermark)] if (now := bounds.get(log.target)) else []
        for log in logs
    }
