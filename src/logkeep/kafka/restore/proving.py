"""The task that proves a restore once more: nothing is written, what is there is compared with the archive."""

import msgspec

from logkeep.errors import Damaged, ObjectMissing
from logkeep.formats.transactions import Settled
from logkeep.formats.view import visible_records
from logkeep.kafka.brokers import SettingsBrokers
from logkeep.kafka.restore.archive import settled_of, stretches, view_of
from logkeep.kafka.restore.proof import prove
from logkeep.kafka.restore.units import LogResult, Offsets, Outcome, ReplayLog, ReplayResult
from logkeep.kafka.settings import ClientSettings
from logkeep.model.work import Progress
from logkeep.repository.chain import Place


class ProveUnit(msgspec.Struct, frozen=True, kw_only=True):
    place: Place
    settings: ClientSettings
    logs: tuple[ReplayLog, ...]
    ends: tuple[int, ...]
    """Up to which offset of the target each was restored."""
    beginnings: bool = False
    """More of each log is to come: only its first records are compared, as many as there are."""

    @property
    def size_bytes(self) -> int:
        return sum(log.size_bytes for log in self.logs)


def prove_logs(unit: ProveUnit, progress: Progress) -> ReplayResult:
    """One result for each log, with its proof."""
    return ReplayResult(
        logs=tuple(_proven(unit, log, end, progress) for log, end in zip(unit.logs, unit.ends, strict=True))
    )


def beginning_of(place: Place, log: ReplayLog, settled: Settled | None, end: int) -> ReplayLog:
    """The log up to the source offset of what stands at the target offset `end`, or would stand there next."""
    if log.offsets is Offsets.PRESERVE:
        return msgspec.structs.replace(log, end=min(max(end, log.start), log.end))
    left = end - log.base
    for records in visible_records(stretches(place, log), view_of(log, settled)):
        if left < len(records):
            return msgspec.structs.replace(log, end=int(records.offsets[left]))
        left -= len(records)
    return log


def _proven(unit: ProveUnit, log: ReplayLog, end: int, progress: Progress) -> LogResult:
    found = LogResult(log=log.log, topic=log.topic, partition=log.partition, outcome=Outcome.DONE, end=end)
    try:
        settled = settled_of(unit.place, log)
        if unit.beginnings:
            log = beginning_of(unit.place, log, settled, end)
        proof = prove(log, unit.place, SettingsBrokers(unit.settings), settled, end, progress)
    except (Damaged, ObjectMissing) as error:
        return msgspec.structs.replace(found, outcome=Outcome.DAMAGED, detail=str(error))
    return msgspec.structs.replace(found, records=proof.records, proof=proof)
