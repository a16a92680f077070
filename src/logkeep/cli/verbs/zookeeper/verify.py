"""`logkeep verify` of a backup of ZooKeeper, from the level `data` on."""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.verbs.backup_rows import seen
from logkeep.cli.verbs.verify import VerifyReport, ZooKeeperVerified
from logkeep.cli.wiring import chosen_engine
from logkeep.config.options import LEVEL
from logkeep.embedded.booting import boot_of, version_of
from logkeep.model.ids import BackupId
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry
from logkeep.repository.chain.owner import this_process
from logkeep.repository.verify.run import Verifier, VerifyResult
from logkeep.zookeeper.repo.verify import DeepVerification, ended_at, intervals
from logkeep.zookeeper.repo.view import view_of
from logkeep.zookeeper.verify.boot import Boot
from logkeep.zookeeper.verify.run import Level

Told = Callable[[Run, SourceRef, VerifyResult], VerifyReport]


def verify_zookeeper(run: Run, place: SourceRef, backup_id: BackupId, told: Told) -> VerifyReport:
    entry = seen(place, run.clock()).completed(str(backup_id))
    level = Level(run[LEVEL])
    with ExitStack() as stack:
        look = DeepVerification(entry, level)
        if level is Level.BOOT:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="logkeep-boot-")))
            look = DeepVerification(entry, level, _boot(run, place, entry), scratch / "data")
        owner, engine = this_process(run.token()), chosen_engine(run, entry.summary.stored_bytes)
        verifier = Verifier(place, engine, owner, run.clock, run.token, deeper=look)
        verified = verifier.verify(backup_id, level)
    return msgspec.structs.replace(told(run, place, verified), zookeeper=_zookeeper(look))


def _boot(run: Run, place: SourceRef, entry: BackupEntry) -> Boot:
    return boot_of(version_of(view_of(place, entry)), run.cache)


def _zookeeper(look: DeepVerification) -> ZooKeeperVerified | None:
    """None where the backup could not be looked into at all."""
    judged = look.judged
    if judged is None:
        return None
    found = judged.verified
    return ZooKeeperVerified(
        restorable=judged.restorable,
        condition=judged.condition.value,
        quality=judged.score,
        end=ended_at(found),
        reachable=tuple(intervals(found)),
        labels=found.labels,
        transactions=found.transactions,
        digests_compared=found.digests_compared,
    )
