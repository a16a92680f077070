"""What runs in forked processes: an application that works, is backed up and restored, with a fault planned."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from logkeep.application.data_directory import DirectoryLock, open_directory
from logkeep.application.directory_restore import restore_directory
from logkeep.application.partition_worker import KeepingLimits
from logkeep.application.runtime import Runtime
from logkeep.application.worker_factory import RuntimeOptions
from logkeep.checkpoint.archive.take import TakeOptions, take
from logkeep.checkpoint.restore.run import known_history, prepare
from logkeep.checkpoint.steps import run
from logkeep.engine.inline import InlineEngine
from logkeep.errors import LogkeepError, TargetUnsafe
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.source import view
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.owner import this_process
from logkeep.store.retrying import RetryingStore
from tests.crash.process_faults import ProcessFaults, path_of
from tests.support.processes import wait_for
from tests.support.running_application import bank

ACCOUNTS = 80
_LIMITS = KeepingLimits(snapshot_every_bytes=1 << 30)
Environment = Mapping[str, str]


class _Faults(ProcessFaults):
    """Of a process with an application, whose repository is the store."""

    def __init__(
        self, url: str, repository: str, fault: str, call: int, environment: Environment, data: Path | None = None
    ) -> None:
        super().__init__(url, fault, call, environment, (data, path_of(url)) if data is not None else ())
        self.place = SourceRef(RetryingStore(self.store), repository, "bank")


@contextmanager
def running(data: Path, place: SourceRef | None) -> Iterator[Runtime]:
    """The application in a directory."""
    data.mkdir(exist_ok=True)
    lock = DirectoryLock(data)
    runtime = Runtime(
        bank(), open_directory(data, "bank", 2, utc_now()), RuntimeOptions(_LIMITS, (lambda: place) if place else None)
    )
    runtime.start()
    try:
        yield runtime
    finally:
        runtime.stop()
        lock.release()


def work(runtime: Runtime, count: int = 12) -> None:
    for number in range(count):
        runtime.submit("move", f"a{number}", {"amount": number, "to": f"b{number}"})


PATIENCE_S = 240
"""For backups that must end well, on a busy machine too."""


def take_one(runtime: Runtime, place: SourceRef, backup_id: int, seconds: int = 30) -> str:
    options = TakeOptions(BackupId(backup_id), timeout=timedelta(seconds=seconds))
    return str(run(take(place, runtime, options, utc_now, random_token), threading.Event().wait).state)


def prepare_bank(*, start: Callable[[], None], url: str, repository: str, data: str, environment: Environment) -> str:
    """Work on all accounts, snapshots, and backup 1."""
    faults = _Faults(url, repository, "", 0, environment)
    start()
    with running(Path(data), faults.place) as runtime:
        work(runtime, ACCOUNTS // 2)
        for worker in runtime.workers:
            worker.keep_once(1)
        work(runtime)
        return take_one(runtime, faults.place, 1, PATIENCE_S)


def back_up(
    *, start: Callable[[], None], url: str, repository: str, data: str, fault: str, call: int, environment: Environment
) -> dict[str, int]:
    """Backup 2: coordinator, both partitions' copies, and its completion."""
    faults = _Faults(url, repository, fault, call, environment, Path(data))
    start()
    with running(Path(data), faults.place) as runtime:
        faults.begin()
        work(runtime, 4)
        for worker in runtime.workers:
            worker.keep_once(1)
        with suppress(LogkeepError):
            take_one(runtime, faults.place, 2)
    return faults.counted()


def follow_up(
    *, start: Callable[[], None], url: str, repository: str, data: str, environment: Environment
) -> dict[str, Any]:
    """What a user does after a crash: start it again, ask for backup 2 once more, and then for backup 3."""
    faults = _Faults(url, repository, "", 0, environment)
    start()
    with running(Path(data), faults.place) as runtime:
        with suppress(LogkeepError):
            take_one(runtime, faults.place, 2)
        third = take_one(runtime, faults.place, 3, PATIENCE_S)
        states = view(faults.place, utc_now(), this_process("reader")).states()
        return {
            "third": third,
            "states": {str(each.id): str(each.name) for each in states},
            "money": [*_accounts(runtime)],
        }


def restore_to(
    *,
    start: Callable[[], None],
    url: str,
    repository: str,
    data: str,
    backup_id: int,
    fault: str = "",
    call: int = 0,
    environment: Environment,
) -> dict[str, int]:
    """Restore a backup over what is in a directory, or finish a restore that was killed."""
    faults = _Faults(url, repository, fault, call, environment, Path(data))
    start()
    faults.begin()
    folded = read_chain(faults.place)
    plan, known = prepare(faults.place, folded, backup_id), known_history(faults.place, folded, 0)
    done = restore_directory(
        faults.place, plan, Path(data), known, utc_now, random_token, lambda _: InlineEngine(), threading.Event().wait
    ).done
    assert all(one.proven for one in done.partitions)
    return faults.counted()


def money_of(*, start: Callable[[], None], data: str) -> list[int] | None:
    """How many accounts there are, and their sum once messages have arrived: 0 unless one was lost or doubled.

    None if the directory is refused.
    """
    start()
    try:
        with running(Path(data), None) as runtime:
            return [*_accounts(runtime)]
    except TargetUnsafe:
        return None


def _accounts(runtime: Runtime) -> tuple[int, int]:
    wait_for(lambda: not any(_waiting(runtime)), "the messages")
    items = [value for worker in runtime.workers for _, value in worker.backend.items()]
    return len(items), sum(msgspec.msgpack.decode(value) for value in items)


def _waiting(runtime: Runtime) -> Iterator[bool]:
    for worker in runtime.workers:
        yield any(worker.processor.state.machine.outbox.values())
