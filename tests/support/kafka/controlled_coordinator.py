"""A coordinator of an application on Kafka that ends, or loses answers, where a test wants it.

`python -m tests.support.kafka.controlled_coordinator JSON` takes the backup that the JSON describes (`Wanted`) and
follows it to its end. It prints `accepted` once every partition has processed its create, as HTTP answers 202 then, and
its end.
"""

import os
import signal
import sys
import threading
from collections.abc import Mapping
from datetime import timedelta

import msgspec

from logkeep.application.kafka_log.client import KafkaClient
from logkeep.checkpoint.archive.running_application import ApplicationFacts, ApplicationPort
from logkeep.checkpoint.archive.settle import settle
from logkeep.checkpoint.archive.take import TakeOptions, take
from logkeep.checkpoint.partition_copy import OnFailover
from logkeep.checkpoint.records import CheckpointDocument
from logkeep.checkpoint.steps import run
from logkeep.errors import ClusterError, LogkeepError
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import open_repository
from logkeep.repository.backups.states import StateName
from logkeep.store.access import open_store
from logkeep.store.retrying import RetryingStore
from tests.support.faults.plan import Scripted, lost_ack
from tests.support.faults.store import FaultyStore


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    bootstrap: str
    name: str
    repository: str
    id: int
    seconds: int
    supersede: bool = False
    on_failover: OnFailover = "fail"
    die_at: int = 0
    """It is killed at this step, counted from 1."""
    lost_answers: int = 0
    """So many answers of partitions are lost, those to creates and those that were read."""
    pause_s: float = 0.0
    """Before each create: messages of partitions that have their checkpoint force it on the others."""
    lost_store_answer: int = 0
    """The store's answer to this call is lost, counted from 1."""


class _LossyPort:
    """The application, some of whose answers are lost on their way."""

    def __init__(self, port: ApplicationPort, lost: int) -> None:
        self._port, self._lost = port, lost

    def facts(self) -> ApplicationFacts:
        return self._port.facts()

    def create(self, partition: int, document: CheckpointDocument) -> None:
        self._port.create(partition, document)
        if self._loses():
            raise ClusterError("the answer was lost")

    def answers(self, checkpoint_id: int) -> Mapping[int, CheckpointDocument]:
        found = self._port.answers(checkpoint_id)
        return {} if self._loses() else found

    def _loses(self) -> bool:
        self._lost -= 1
        return self._lost >= 0


def main(text: str) -> None:
    wanted, steps = msgspec.json.decode(text, type=Wanted), 0

    def watch(step: str) -> None:
        nonlocal steps
        steps += 1
        if step.startswith("create "):
            threading.Event().wait(wanted.pause_s)
        if steps == wanted.die_at:
            print(f"killed at {step}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    plan = Scripted({wanted.lost_store_answer: lost_ack()})
    place = open_repository(RetryingStore(FaultyStore(open_store(wanted.repository), plan))).place(wanted.name)
    timeout = timedelta(seconds=wanted.seconds)
    how = TakeOptions(BackupId(wanted.id), False, wanted.supersede, timeout, wanted.on_failover)
    pause = threading.Event().wait
    try:
        port = _LossyPort(KafkaClient({"bootstrap.servers": wanted.bootstrap}, wanted.name), wanted.lost_answers)
        state, reason = run(take(place, port, how, utc_now, random_token), pause, watch).state, ""
        print("accepted", flush=True)
        while state is StateName.ONGOING:
            settled = run(settle(place, wanted.id, utc_now, random_token), pause, watch)
            state, reason = settled.state, settled.reason
            pause(0.3)
        print(f"{state}: {reason}", flush=True)
    except LogkeepError as error:
        print(f"{type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
