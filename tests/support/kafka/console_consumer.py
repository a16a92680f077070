"""What Apache's own console consumer prints of topics: a second judge of a restore, independent of the first.

It does not print topics, and one Java process for each of them would take minutes: it reads all of them at once, and
its lines are told apart by the records that the first judge saw.
"""

import subprocess
from collections import defaultdict
from collections.abc import Mapping

from logkeep.embedded.kafka import EmbeddedKafka
from tests.support.kafka.consumer_view import Seen

_FIELD, _LINE = b"<|field|>", b"<|line|>\n"
_TIMEOUT_S = 120
Log = tuple[str, int]
Lines = dict[tuple[tuple[str, ...], int], list[bytes]]
"""By topics that have such a record, mostly one, and partition: lines in the order in which they were printed."""


def printed(kafka: EmbeddedKafka, known: Mapping[Log, Mapping[int, Seen]], prefix: str = "") -> Lines:
    """Every committed record of the known topics, or of those with a prefix to their names, as it is printed."""
    topics = f"{prefix}({'|'.join(sorted({topic for topic, _ in known}))})"
    owners = _owners(known)
    found: Lines = defaultdict(list)
    for line in _run(kafka, topics, sum(map(len, known.values()))).split(_LINE)[:-1]:
        time, partition, offset, headers, key, value = line.split(_FIELD)
        time_ms, number = time.rpartition(b":")[2], int(partition.rpartition(b":")[2])  # its type is told elsewhere
        found[owners[number, time_ms, key, value], number].append(_FIELD.join((offset, time_ms, headers, key, value)))
    return _ordered(found)


def without_offsets(lines: Lines) -> Lines:
    return _ordered({log: [line.partition(_FIELD)[2] for line in some] for log, some in lines.items()})


def _ordered(lines: Lines) -> Lines:
    """Where a record could be of several topics, their order among each other means nothing."""
    return {log: some if len(log[0]) == 1 else sorted(some) for log, some in lines.items()}


def _owners(known: Mapping[Log, Mapping[int, Seen]]) -> dict[tuple[int, bytes, bytes, bytes], tuple[str, ...]]:
    found = defaultdict[tuple[int, bytes, bytes, bytes], set[str]](set)
    for (topic, partition), records in known.items():
        for record in records.values():
            found[partition, b"%d" % record.time, _shown(record.key), _shown(record.value)].add(topic)
    return {key: tuple(sorted(topics)) for key, topics in found.items()}


def _shown(value: bytes | None) -> bytes:
    return b"null" if value is None else value


def _run(kafka: EmbeddedKafka, topics: str, records: int) -> bytes:
    wanted = ["--include", topics, "--from-beginning", "--isolation-level", "read_committed"]
    parts = [f"print.{part}=true" for part in ("timestamp", "partition", "offset", "headers", "key", "value")]
    shape = [*parts, f"key.separator={_FIELD.decode()}", f"line.separator={_LINE.decode()}"]
    ending = ["--max-messages", str(records), "--timeout-ms", "30000"]
    properties = [word for each in shape for word in ("--formatter-property", each)]
    words = ["--bootstrap-server", kafka.bootstrap, *wanted, *ending, *properties]
    command = kafka.command("org.apache.kafka.tools.consumer.ConsoleConsumer", words)
    # Keys and values are any bytes: they are not read as text.
    done = subprocess.run(command, cwd=kafka.directory, capture_output=True, timeout=_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
