"""The task that proves a restore once more: nothing is written, what is there is compared with the archive."""

import msgspec

from logkeep.errors import Damaged, ObjectMissing
from logkeep.kafka.brokers import SettingsBrokers
from logkeep.kafka.restore.archive import settled_of
from logkeep.kafka.restore.proof import prove
from logkeep.kafka.restore.units import LogResult, Outcome, ReplayLog, ReplayResult
from logkeep.kafka.settings import ClientSettings
from logkeep.model.work import Progress
from logkeep.repository.chain import Place


class ProveUnit(msgspec.Struct, frozen=True, kw_only=True):
    place: Place
    settings: ClientSettings
    logs: tuple[ReplayLog, ...]
    ends: tuple[int, ...]
    """Up to which offset of the target each was restored."""

    @property
    def size_bytes(self) -> int:
        return sum(log.size_bytes for log in self.logs)


def prove_logs(unit: ProveUnit, progress: Progress) -> ReplayResult:
    """One result for each log, with its proof."""
    return ReplayResult(
        logs=tuple(_proven(unit, log, end, progress) for log, end in zip(unit.logs, unit.ends, strict=True))
    )


def _proven(unit: ProveUnit, log: ReplayLog, end: int, progress: Progress) -> LogResult:
    found = LogResult(log=log.log, topic=log.topic, partition=log.partition, outcome=Outcome.DONE, end=end)
    try:
        settled = settled_of(unit.place, log)
        proof = prove(log, unit.place, SettingsBrokers(unit.settings), settled, end, progress)
    except (Damaged, ObjectMissing) as error:
        return msgspec.structs.replace(found, outcome=Outcome.DAMAGED, detail=str(error))
    return msgspec.structs.replace(found, records=proof.records, proof=proof)
