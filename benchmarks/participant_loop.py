"""The ready loop of participants, beside the same loop without stamps, and beside one that has no checkpoints at all.

    python -m benchmarks.participant_loop [records] [rounds]

Each reads one topic of four partitions from a real broker, and writes each record, changed, to another topic; outputs
and offsets are one transaction every 0.1 seconds. "plain" is what a user would write with confluent-kafka alone. In
each round all read all records, in another order. Prints records per second, processor seconds of this process, and
medians of the ratios: 1 means that stamps, or the whole loop, cost nothing. Values are JSON, decoded and encoded.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from unittest.mock import patch

from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.kafka_workload import OptimisedKafka
from logkeep.application.kafka import participant
from logkeep.application.kafka.headers import Header, OutputStamps
from logkeep.application.kafka.participant import Output, Participant
from logkeep.model.cache import cache_dir

PARTITIONS = 4
INPUT, OUTPUT = "orders", "charges"
EVERY_S = 0.1
Measured = tuple[float, float]
Loop = Callable[[str, str, int], Measured]


def changed(message: Message) -> bytes:
    order = json.loads(message.value() or b"{}")
    return json.dumps({**order, "state": "charged"}).encode()


def _plain(bootstrap: str, group: str, count: int) -> Measured:
    config = {"bootstrap.servers": bootstrap}
    producer = Producer({**config, "acks": "all", "enable.idempotence": True, "transactional.id": group})
    producer.init_transactions(30)
    consumer = Consumer(
        {
            **config,
            "group.id": group,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([INPUT])
    done, measured = 0, _Measurement()
    producer.begin_transaction()
    due = time.monotonic() + EVERY_S
    while done < count:
        for message in consumer.consume(500, 0.05):
            _check(message.error())
            measured.begin()
            producer.produce(OUTPUT, changed(message), message.key())
            done += 1
        if time.monotonic() >= due or done >= count:
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), 30
            )
            producer.commit_transaction(30)
            producer.begin_transaction()
            due = time.monotonic() + EVERY_S
    found = measured.end(done)
    producer.abort_transaction(30)
    consumer.close()
    return found


class _NoStamps(OutputStamps):
    def stamped(self, headers: Iterable[Header], checkpoint_id: int, position: int, index: int) -> list[Header]:
        del checkpoint_id, position, index
        return list(headers)


def _without_stamps(bootstrap: str, group: str, count: int) -> Measured:
    with patch.object(participant, "OutputStamps", _NoStamps):
        return _participant(bootstrap, group, count)


def _participant(bootstrap: str, group: str, count: int) -> Measured:
    done, measured = 0, _Measurement()

    def charge(message: Message, output: Output) -> None:
        nonlocal done
        measured.begin()
        output.send(OUTPUT, changed(message), message.key())
        done += 1

    config = {"bootstrap.servers": bootstrap}
    loop = Participant("shop", group, [INPUT], charge, outputs=[OUTPUT], config=config, commit_every_s=EVERY_S)
    ended = list[Measured]()

    def stop() -> bool:
        if done >= count and not ended:
            loop.step(0)
            ended.append(measured.end(done))
        return bool(ended)

    loop.run(stop)
    return ended[0]


class _Measurement:
    """From the first record: joining a group takes seconds."""

    def __init__(self) -> None:
        self._began = self._cpu = 0.0

    def begin(self) -> None:
        if not self._began:
            self._began, self._cpu = time.perf_counter(), time.process_time()

    def end(self, count: int) -> Measured:
        return count / (time.perf_counter() - self._began), time.process_time() - self._cpu


def _check(error: KafkaError | None) -> None:
    if error is not None:
        raise SystemExit(str(error))


def _fill(bootstrap: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000})
    for number in range(count):
        value = json.dumps({"order": number, "customer": f"customer-{number % 1000}", "amount": number % 90})
        while True:
            try:
                producer.produce(INPUT, value.encode(), f"o-{number}".encode())
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    loops: dict[str, Loop] = {
        "participant": _participant,
        "without stamps": _without_stamps,
        "plain": _plain,
    }
    cache = cache_dir(os.environ, Path.home())
    with tempfile.TemporaryDirectory() as scratch, OptimisedKafka(Path(scratch), cache) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for created in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in (INPUT, OUTPUT)]).values():
            created.result()
        _fill(broker.bootstrap, count)
        rounds_of = [_round(broker.bootstrap, loops, each, count) for each in range(rounds)]
    for name in ("without stamps", "plain"):
        speed = statistics.median(found["participant"][0] / found[name][0] for found in rounds_of)
        cpu = statistics.median(found[name][1] / found["participant"][1] for found in rounds_of)
        print(f"participant / {name}: records per second × {speed:.2f}, per CPU second × {cpu:.2f}, median of {rounds}")


def _round(bootstrap: str, loops: Mapping[str, Loop], number: int, count: int) -> dict[str, Measured]:
    names = list(loops)
    found = {}
    for name in [*names[number % 3 :], *names[: number % 3]]:
        found[name] = loops[name](bootstrap, f"{name.replace(' ', '-')}-{number}", count)
        print(f"{name:>14} {found[name][0]:8,.0f} records/s, {found[name][1]:5.2f} CPU s", flush=True)
    return found


if __name__ == "__main__":
    main()
