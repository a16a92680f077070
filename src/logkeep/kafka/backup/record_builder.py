"""What is recorded of every log of a cut. Pure."""

from collections.abc import Mapping

from logkeep.kafka.backup.assemble import Assembled
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.plan import ArchivedReach
from logkeep.kafka.backup.units import EpochRun
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.batch_traits import LogTraits, all_joined
from logkeep.kafka.record.documents import PartitionRecord


def logs_of(
    before: Mapping[TopicPartition, ArchivedReach], facts: Facts, assembled: Assembled
) -> tuple[PartitionRecord, ...]:
    """One record for each log; what was not copied now is as the last backup had it."""
    open_since = {t.log: t.first_offset for t in reversed(facts.open_transactions)}
    records = []
    for cut in assembled.cut:
        log = TopicPartition(cut.log.name, cut.log.partition)
        known = before.get(log)
        same = known is not None and known.history == cut.log.history
        old = known if known is not None and same else ArchivedReach(cut.log.history, -1, -1, traits=LogTraits())
        tip = assembled.tips.get(cut.log, EpochRun(old.last_epoch, -1, old.last_end))
        records.append(
            PartitionRecord(
                topic=log.topic,
                partition=log.partition,
                history=cut.log.history,
                start=cut.start,
                end=cut.end,
                last_stable=open_since.get(log, cut.end),
                last_epoch=tip.epoch,
                last_end=tip.end,
                traits=all_joined((old.traits, assembled.traits.get(cut.log, LogTraits()))),
            )
        )
    return tuple(records)
