"""How logs are divided among tasks: logs of one leader together, about as much as one task should read. Pure."""

from collections.abc import Sequence

from logkeep.kafka.datasets.values import LogToExport

UNIT_BYTES = 128 << 20
UNIT_LOGS = 200


def divide_into_units(logs: Sequence[LogToExport]) -> list[tuple[LogToExport, ...]]:
    """The logs in units, in order of broker, topic and partition. A log is never divided: its records are written in
    order."""
    found: list[tuple[LogToExport, ...]] = []
    held: list[LogToExport] = []
    for each in sorted(logs, key=lambda p: (p.source.broker, p.log)):
        size = sum(one.size_bytes for one in held) if held else 0
        other = bool(held) and held[0].source.broker != each.source.broker
        if held and (other or size + each.size_bytes > UNIT_BYTES or len(held) >= UNIT_LOGS):
            found.append(tuple(held))
            held = []
        held.append(each)
    return [*found, *([tuple(held)] if held else [])]
