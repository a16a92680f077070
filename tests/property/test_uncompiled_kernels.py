"""Kernels give equal results compiled and uncompiled: on golden files, on random and corrupted bytes, at the limits."""

import io
import random
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from logkeep.errors import Damaged
from logkeep.formats.compare.digest import SMALLEST
from logkeep.formats.compare.digest_kernels import fold, fold_places
from logkeep.formats.kafka.batches import walk
from logkeep.formats.kafka.encode_kernels import encode_groups
from logkeep.formats.kafka.record_kernels import BATCH_COLUMNS, SPAN_COLUMNS, decode_batches
from logkeep.formats.warm import warm
from logkeep.formats.zookeeper import txnlog
from logkeep.formats.zookeeper.changes import changes
from tests.property import fuzzed_records, fuzzed_zookeeper_files
from tests.support.both_forms import both_forms
from tests.support.zookeeper.encoding import LOG_HEADER, record
from tests.support.zookeeper.handmade_directories import txn

GOLDEN = Path(__file__).parents[1] / "golden" / "zookeeper"
LIMITS = (-(2**63), -(2**63) + 1, -1, 0, 1, 2**62, 2**63 - 2, 2**63 - 1)


@pytest.fixture
def compared() -> Iterator[dict[str, int]]:
    with both_forms() as counts:
        yield counts


def test_every_kernel(compared: dict[str, int]) -> None:
    warm()
    assert len(compared) == 47


def test_golden_logs(compared: dict[str, int]) -> None:
    for version in ("3.4.14", "3.9.5"):
        with tarfile.open(GOLDEN / f"{version}.tar.xz") as files:
            for member in files:
                if member.name.startswith("log.") and (opened := files.extractfile(member)) is not None:
                    _read(opened.read())
    assert compared["change_kernels.explode"] > 1


def _read(log: bytes) -> None:
    txnlog.scan(io.BytesIO(log), deep=True)
    try:
        for records in txnlog.tables(io.BytesIO(log)):
            list(changes(records))
    except Damaged:
        pass


@pytest.mark.parametrize("count", [160, pytest.param(3000, marks=pytest.mark.soak)])
def test_random_and_corrupted_bytes(compared: dict[str, int], count: int) -> None:
    fuzzed_zookeeper_files.fuzz(count, 3)
    fuzzed_records.fuzz(2 * count, 3)
    for seed in range(count // 16):
        _read(fuzzed_zookeeper_files._log(random.Random(seed)))
    assert compared["txnlog_kernels.find"] > count // 2
    assert compared["record_kernels.decode_batches"] > count // 4


def test_numbers_at_their_limits(compared: dict[str, int]) -> None:
    """Compiled numbers wrap; Python's would grow, or refuse to become one of numpy's."""
    for first in LIMITS:
        for second in LIMITS:
            _read(LOG_HEADER + _wrapped(first) + _wrapped(second))
    times: Any = np.array([a for a in LIMITS for _ in LIMITS] + list(LIMITS) * len(LIMITS), np.int64)
    spans = np.zeros((len(times), SPAN_COLUMNS), np.int32)
    spans[:, 7] = 8
    data = np.frombuffer(SMALLEST, np.uint8)
    groups = np.array([[row, row + 2] for row in range(0, len(times), 2)], np.int64)
    ends, latest, out = np.zeros(len(groups), np.int64), np.zeros(len(groups), np.int64), np.zeros(1 << 16, np.uint8)
    assert encode_groups(data, times, spans, groups, 61, out, ends, latest) > 0
    fold(data, times[::-1].copy(), times, spans, np.array([1, 2**61 - 2, 0], np.uint64))
    fold_places(times, np.zeros(3, np.uint64))
    assert len(compared) == 7, compared


def test_time_deltas_that_wrap(compared: dict[str, int]) -> None:
    """A record section of one record, ten bytes of time delta, with each base time."""
    batches = walk(SMALLEST).batches
    assert len(batches) == 1
    section = np.frombuffer(bytes.fromhex("1e00feffffffffffffffff01000101000000"), np.uint8)
    for base in LIMITS:
        for end in range(len(section) + 1):
            rows = np.zeros((1, BATCH_COLUMNS), np.int64)
            rows[0] = [0, end, base, 5, 1, base, 0]
            columns = np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros((1, SPAN_COLUMNS), np.int32)
            decode_batches(section, rows, *columns)
    assert compared["record_kernels.decode_batches"] == len(LIMITS) * (len(section) + 1)


def _wrapped(zxid: int) -> bytes:
    """A record with a zxid and a time at a limit."""
    body = bytearray(txn(1)[12:-1])
    body[12:28] = (zxid % 2**64).to_bytes(8) + (-zxid % 2**64).to_bytes(8)
    return record(bytes(body))
