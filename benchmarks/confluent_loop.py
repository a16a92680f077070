"""What a Python user would write to put records back: confluent-kafka's producer in a loop."""

import time

from confluent_kafka import Producer

from benchmarks.kafka_workload import Load


def confluent_records_per_s(bootstrap: str, topic: str, load: Load, seconds: float) -> float:
    """Idempotent, acknowledged by all, for about so many seconds."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "batch.size": load.batch_bytes,
            "batch.num.messages": 100_000,
            "linger.ms": 20,
            "compression.type": load.codec,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    value, sent, started = b"x" * load.record_bytes, 0, time.monotonic()
    while time.monotonic() < started + seconds:
        for index in range(1000):
            while True:
                try:
                    producer.produce(topic, value, partition=(sent + index) // 1000 % load.partitions)
                    break
                except BufferError:
                    producer.poll(0.01)
        sent += 1000
        producer.poll(0)
    assert producer.flush(60) == 0
    return sent / (time.monotonic() - started)
