"""A consistent backup of three partitions made by hand: messages, distributed commands, a snapshot, two segments."""

from dataclasses import replace
from typing import Any

from tests.support.zeebe.handmade import (
    COMMAND,
    EVENT,
    MadeCopy,
    MadeRecord,
    copy_of,
    create,
    created,
    frames,
    name_of,
    segment,
    with_snapshot,
)

ID = 20
KEY = 51


def key(partition: int, number: int) -> int:
    return partition << KEY | number


def subscription(element: int, process: int, home: int, name: str = "paid") -> dict[str, Any]:
    """The value of both kinds of subscription records."""
    return {
        "processInstanceKey": process,
        "elementInstanceKey": element,
        "messageName": name,
        "subscriptionPartitionId": home,
    }


def batches() -> dict[int, list[list[MadeRecord]]]:
    """Partition 1 distributes a deployment and has a process; partition 2 has its message subscription."""
    deployed, asked = key(1, 5), subscription(key(1, 8), key(1, 7), 2)
    return {
        1: [
            [],
            [MadeRecord(1, COMMAND, 4, 0, request=7), MadeRecord(2, EVENT, 33, 1, 1, deployed, {"partitionId": 2})],
            [MadeRecord(3, EVENT, 33, 1, 1, deployed, {"partitionId": 3})],
            [MadeRecord(4, EVENT, 12, 0, 3, value=asked)],
            [MadeRecord(5, COMMAND, 33, 2, key=deployed, value={"partitionId": 2})],
            [MadeRecord(6, COMMAND, 12, 1, value=asked), MadeRecord(7, COMMAND, 0, 3, key=key(1, 9))],
            [create(8, ID)],
            [created(9, ID, 8), MadeRecord(10, EVENT, 12, 4, 6, value=asked)],
        ],
        2: [
            [],
            [MadeRecord(1, COMMAND, 4, 0, key=deployed, value={})],
            [MadeRecord(2, COMMAND, 11, 0, value=asked), MadeRecord(3, EVENT, 11, 1, 2, value=asked)],
            [create(4, ID), created(5, ID, 4)],
            [MadeRecord(6, COMMAND, 11, 2, value=asked)],
        ],
        3: [[], [MadeRecord(1, COMMAND, 4, 0, key=deployed)], [MadeRecord(2)], [create(3, ID)]],
    }


POSITIONS = {1: 8, 2: 4, 3: 3}


def made_backup(**changes: Any) -> list[MadeCopy]:
    """One copy of each partition; the log of the third is in two segments, and it has a snapshot."""
    found = [copy_of(number, made, POSITIONS[number], partitions=3, **changes) for number, made in batches().items()]
    third, made = found[2], batches()[3]
    first, second = frames(made[:2]), frames(made[2:], first_index=3)
    stored = {
        name_of(3, 1): segment(first, size=4096, closed=True),
        name_of(3, 2): segment(second, 2, 3, 4096),
        name_of(3, 3): bytes(4096),
    }
    metadata = {"version": 1, "processedPosition": 1, "exportedPosition": 1, "lastFollowupEventPosition": 1}
    third = with_snapshot(replace(third, segments=stored), "2-1-1-1-0", metadata, {"000012.sst": b"table" * 100})
    return [*found[:2], third]
