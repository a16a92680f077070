"""`zeebe verify` of a store in a directory, beside `sha256sum` of the used bytes of the same files.

The log of the golden backup (a real Zeebe 8.6.0) is repeated with new indexes and positions until it has the wanted
size, so frames and records are as large and as many as in reality. Seconds are the processor's, the best of five.
"""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from logkeep.checkpoint.zeebe.inventory import find_backup
from logkeep.checkpoint.zeebe.verify import verify_backup
from logkeep.engine.inline import InlineEngine
from logkeep.formats.jit import compile_from_now_on
from logkeep.store.local.store import LocalStore
from tests.support.zeebe.golden import unpacked_store
from tests.support.zeebe.handmade import MadeCopy, create, frames, name_of, segment, write_store
from tests.support.zeebe.repeated_log import renumbered

SEGMENT_BYTES = 64 << 20
ROUNDS = 5


def main(megabytes: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        used = _store(root / "store", unpacked_store(root / "golden"), megabytes << 20)
        store = LocalStore(root / "store")
        compile_from_now_on()
        ours = _best(lambda: _verified(store))
        theirs = _best(lambda: subprocess.run(["sha256sum", *map(str, used)], check=True, capture_output=True))
        size = sum(path.stat().st_size for path in used)
        print(f"zeebe verify {size / ours / 1e6:8,.0f} MB/s {ours:6.2f} s")
        print(f"sha256sum    {size / theirs / 1e6:8,.0f} MB/s {theirs:6.2f} s of {size / 1e6:,.0f} MB of used bytes")
        print(f"zeebe verify / sha256sum: {theirs / ours:.2f} x")


def _store(root: Path, golden: Path, wanted: int) -> list[Path]:
    """One partition whose log is the golden one many times; returns its segments, which have no unused bytes."""
    data = (golden / "1/20/0/segments" / name_of(1)).read_bytes()
    segments, index, position, number = dict[str, bytes](), 1, 1, 1
    while sum(map(len, segments.values())) < wanted:
        made, first = list[bytes](), index
        while sum(map(len, made)) < SEGMENT_BYTES:
            again, index, position = renumbered(data, index, position)
            made += again
        segments[name_of(1, number)] = segment(made, number, first)
        number += 1
    last = frames([[create(position, 99)]], index)
    segments[name_of(1, number)] = segment(last, number, index)
    write_store(root, [MadeCopy(1, 99, position, segments)])
    return [root / "1/99/0/segments" / each for each in segments]


def _verified(store: LocalStore) -> None:
    result = verify_backup(store, find_backup(store, "99"), InlineEngine())
    wrong = [each for each in result.findings if each.severity == "damage" and "checkpoint" not in each.code]
    if wrong:
        raise SystemExit(str(wrong[0]))


def _best(run: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = _processor_s()
        run()
        times.append(_processor_s() - began)
    return min(times)


def _processor_s() -> float:
    """Of this process and its children."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 256)
