"""Transaction logs to measure with, written from the description of the format."""

import itertools
import os
import random
import resource
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

PAYLOADS = {"100 B": 100, "1 kB": 1000}
_HEADER = struct.pack(">4siq", b"ZKLG", 2, 0)
_ALLOCATED = 64 << 20


@dataclass(frozen=True)
class Workload:
    folder: Path
    transactions: int
    rounds: int
    large_bytes: int

    def log(self, payload: int) -> Path:
        """One of setData transactions, in a file with holes behind them; made once."""
        return self._made(f"log.{payload}", set_data_bodies(payload))

    def mixed_log(self) -> Path:
        return self._made("log.mixed", mixed_bodies(100))

    def _made(self, name: str, bodies: Iterator[bytes]) -> Path:
        path = self.folder / name
        if not path.exists():
            write_log(path, itertools.islice(bodies, self.transactions))
        return path

    def best(self, work: Callable[[], object]) -> float:
        """CPU seconds."""
        return min(cpu_s(work) for _ in range(self.rounds))


def peak_mb() -> float:
    """The most memory that this process ever had."""
    with Path("/proc/self/status").open(encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def cpu_s(work: Callable[[], object]) -> float:
    """Of this process and of those that it started and waited for: another load on the machine is not in it."""
    before = _spent_s()
    work()
    return _spent_s() - before


def _spent_s() -> float:
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in spent)


def set_data_bodies(payload: int, nodes: int = 1000) -> Iterator[bytes]:
    """Transactions without end, zxids from 1 on."""
    noise = random.Random(1).randbytes(payload + 4096)
    for zxid in itertools.count(1):
        path = b"/bench/node-%010d" % (zxid % nodes)
        data = noise[zxid % 4096 :][:payload]
        head = struct.pack(">qiqqi", 0x10000ABCDEF0001, zxid, zxid, 1_700_000_000_000 + zxid, 5)
        yield b"".join(
            (
                head, struct.pack(">i", len(path)), path, struct.pack(">i", len(data)), data,
                struct.pack(">iiq", zxid // nodes + 1, 2, zxid * 0x9E3779B97F4A7C15 % (1 << 63)),
            )
        )  # fmt: skip


def create_bodies(payload: int) -> Iterator[bytes]:
    """A node each, a thousand below one parent; zxids from 1 on."""
    noise = random.Random(3).randbytes(payload + 4096)
    acls = struct.pack(">iii5si6s", 1, 31, 5, b"world", 6, b"anyone")
    for zxid in itertools.count(1):
        parent, child = divmod(zxid - 1, 1001)
        name = b"/p%07d" % parent + (b"/node-%010d" % child if child else b"")
        data = noise[zxid % 4096 :][:payload]
        head = struct.pack(">qiqqi", 0x10000ABCDEF0001, zxid, zxid, 1_700_000_000_000 + zxid, 1)
        yield b"".join(
            (
                head,
                struct.pack(">i", len(name)),
                name,
                struct.pack(">i", len(data)),
                data,
                acls,
                struct.pack(">?i", False, zxid),
            )
        )


def mixed_bodies(payload: int) -> Iterator[bytes]:
    """A life of a node: created, set twice, deleted; zxids from 1 on."""
    noise = random.Random(2).randbytes(payload)
    data = struct.pack(">i", payload) + noise
    acls = struct.pack(">iii5si6s", 1, 31, 5, b"world", 6, b"anyone")
    for zxid in itertools.count(1):
        name = b"/bench/mixed-%010d" % ((zxid - 1) // 4)
        path = struct.pack(">i", len(name)) + name
        kind, rest = (
            (1, path + data + acls + struct.pack(">?i", False, zxid)),
            (5, path + data + struct.pack(">i", 1)),
            (5, path + data + struct.pack(">i", 2)),
            (2, path),
        )[(zxid - 1) % 4]
        yield struct.pack(">qiqqi", 0x10000ABCDEF0001, zxid, zxid, 1_700_000_000_000, kind) + rest


def write_log(path: Path, bodies: Iterator[bytes]) -> None:
    with path.open("wb") as file:
        file.write(_HEADER)
        for body in bodies:
            file.write(struct.pack(">qi", zlib.adler32(body), len(body)) + body + b"B")
        used = file.tell()
    os.truncate(path, 16 + -(-used // _ALLOCATED) * _ALLOCATED)
