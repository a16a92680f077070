"""Groups partitions into bundles, one for each task. Pure.

A partition is never split, because its records have one order. Partitions of one leader share a task, and with it
connections and requests: any number of small ones, and a few large ones while there is enough for every task. A request
holds one batch of each partition, so with small batches only many partitions make a request large enough.
If a leader moves later, its bundle is only slower.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

TOGETHER_BYTES = 64 << 20
TOGETHER_LOGS = 64
"""A task holds one open piece of the archive for each log; pieces of small logs are small."""
SIDE_BY_SIDE = 4
"""Logs that share a task whatever their size."""
_UNEQUAL = 16
"""A task may exceed its share by this fraction: evenly filled partitions are never exactly equal."""


def bundles(
    logs: Sequence[T], leader_of: Callable[[T], int], size_of: Callable[[T], int], at_once: int = 1
) -> list[list[T]]:
    """Every log in exactly one bundle, all of a bundle with one leader; the largest bundle comes first.

    Where there is less than a full bundle for each of `at_once` tasks, bundles are made smaller.
    """
    total = sum(map(size_of, logs))
    fair_bytes = max(total // max(at_once, 1), 1)
    share_bytes = fair_bytes + fair_bytes // _UNEQUAL
    most_logs = max(min(TOGETHER_LOGS, -(-len(logs) // max(at_once, 1))), 1)
    done: list[list[T]] = []
    open_bundles: dict[int, tuple[list[T], int]] = {}
    for log in sorted(logs, key=size_of, reverse=True):
        leader, size = leader_of(log), size_of(log)
        bundle, held = open_bundles.get(leader, ([], 0))
        most_bytes = share_bytes if len(bundle) < SIDE_BY_SIDE else min(TOGETHER_BYTES, share_bytes)
        if bundle and (held + size > most_bytes or len(bundle) >= most_logs):
            done.append(bundle)
            bundle, held = [], 0
        bundle.append(log)
        open_bundles[leader] = bundle, held + size
    done += [bundle for bundle, _ in open_bundles.values()]
    return sorted(done, key=lambda b: sum(map(size_of, b)), reverse=True)
