"""The members of a set that is taken: each is backed up by the functions of its own verb, with its own settings."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from logkeep.application.backup_set.run import MemberCapture
from logkeep.checkpoint.archive.settle import settle
from logkeep.checkpoint.archive.take import TakeOptions, check_application, take
from logkeep.checkpoint.steps import Steps, Wait
from logkeep.checkpoint.steps import run as run_steps
from logkeep.cli.frame.execute import Run
from logkeep.cli.verbs.application.backup import running_application
from logkeep.cli.verbs.kafka import backup as kafka_verb
from logkeep.cli.verbs.kafka.copied_report import copied_code
from logkeep.cli.verbs.zookeeper import backup as zookeeper_verb
from logkeep.config.options import APP_TIMEOUT, BACKUP_ID, SOURCE, TAG
from logkeep.errors import BackupFailed, Interrupted, LogkeepError
from logkeep.kafka.backup.run import KafkaBackup
from logkeep.kafka.backup.values import KafkaBackupOptions
from logkeep.kinds import APPLICATION, KAFKA, ZOOKEEPER
from logkeep.model.ids import BackupId
from logkeep.model.time import Clock, TokenSource
from logkeep.repository.backups.states import StateName
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.zookeeper.backup.run import ZooKeeperBackupOptions

_POLL_S = 0.5


@dataclass(frozen=True)
class _Member:
    run: Run
    """With the settings of this member."""
    place: SourceRef
    id: BackupId
    group: tuple[str, ...]

    @property
    def source(self) -> str:
        return self.place.source

    def finish(self) -> int:
        """Kafka and ZooKeeper: `capture` has done everything."""
        return 0


class ApplicationMember(_Member):
    def preview(self) -> None:
        with running_application(self.run, self.source) as port:
            check_application(self.place, port.facts())

    def capture(self) -> int:
        options = TakeOptions(
            wanted=self.id, wait=False, timeout=self.run[APP_TIMEOUT], tags=self.run[TAG], group=self.group
        )
        with running_application(self.run, self.source) as port:
            run_steps(take(self.place, port, options, self.run.clock, self.run.token), threading.Event().wait)
        return 0

    def finish(self) -> int:
        run_steps(_completed(self.place, self.id, self.run.clock, self.run.token), threading.Event().wait)
        entry = read_chain(self.place).entry(self.id)
        return 21 if entry is not None and entry.summary.warnings else 0


def _completed(place: SourceRef, backup_id: BackupId, clock: Clock, tokens: TokenSource) -> Steps[None]:
    """Until it is decided. Raises BackupFailed."""
    while (settled := (yield from settle(place, backup_id, clock, tokens))).state is StateName.ONGOING:
        yield Wait(_POLL_S)
    if settled.state is not StateName.COMPLETED:
        raise BackupFailed(settled.reason or "it no longer exists", subject=f"backup {backup_id}")


class KafkaMember(_Member):
    @cached_property
    def _task(self) -> tuple[KafkaBackup, KafkaBackupOptions]:
        task, options = kafka_verb.backup_of(self.run, self.place)
        return task, replace(options, group=self.group)

    def preview(self) -> int:
        return kafka_verb.preview(self.run, *self._task).new_bytes

    def capture(self) -> int:
        return copied_code(kafka_verb.take(self.run, *self._task))


class ZooKeeperMember(_Member):
    @cached_property
    def _options(self) -> ZooKeeperBackupOptions:
        return zookeeper_verb.file_options(self.run)

    def preview(self) -> int:
        return zookeeper_verb.preview(self.run, self.place, self._options).new_bytes

    def capture(self) -> int:
        with zookeeper_verb.opened_sink(self.run, self.place, self.group) as sink:
            return zookeeper_verb.copy_files(self.run, self.place, self._options, sink).exit_code


_KINDS: dict[str, Callable[[Run, SourceRef, BackupId, tuple[str, ...]], MemberCapture]] = {
    APPLICATION.name: ApplicationMember,
    KAFKA.name: KafkaMember,
    ZOOKEEPER.name: ZooKeeperMember,
}


def newest_checkpoint(run: Run, source: str) -> int:
    """Of a running application, markers without a copy included. 0 if it does not answer: its preview says why."""
    try:
        with running_application(run.with_flags({f"--{SOURCE.name}": source}), source) as port:
            return port.facts().latest
    except Interrupted:
        raise
    except LogkeepError:
        return 0


def member_capture(run: Run, place: SourceRef, kind: str, backup_id: BackupId, group: tuple[str, ...]) -> MemberCapture:
    """A member with the settings that the configuration file has for its source."""
    own = run.with_flags({f"--{SOURCE.name}": place.source, f"--{BACKUP_ID.name}": str(backup_id)})
    return _KINDS[kind](own, place, backup_id, group)
