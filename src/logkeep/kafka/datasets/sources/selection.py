"""Which topics and partitions are exported. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from logkeep.errors import UsageError
from logkeep.kafka.datasets.values import ExportableLog
from logkeep.kafka.restore.plan.selection import in_partitions, partition_ranges
from logkeep.model.plurals import first_names


@dataclass(frozen=True)
class ExportSelection:
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    internal: bool = False
    partitions: tuple[str, ...] = ()
    """`[TOPIC:]0,3-5`"""

    def chosen(self, logs: Sequence[ExportableLog]) -> tuple[ExportableLog, ...]:
        """The selected logs. Raises UsageError for a wrong list of partitions, or one that selects none."""
        names = {each.log.topic: each.log.topic for each in logs}
        ranges = partition_ranges(self.partitions, names)
        found = tuple(each for each in logs if in_partitions(ranges, each.log.topic, each.log.partition))
        if logs and not found:
            raise UsageError("no topic has these partitions", subject="--partitions")
        return found

    def refuse_nothing(self, chosen: Sequence[str], known: Sequence[str]) -> None:
        """Raises UsageError if patterns were given and none matches."""
        if self.include and not chosen:
            remedy = f"patterns are regular expressions for whole names; the backup has: {first_names(sorted(known))}"
            raise UsageError(f"no topic matches {' or '.join(self.include)}", remedy=remedy)
