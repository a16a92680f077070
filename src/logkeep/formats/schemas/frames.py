"""Finds the schema ids with which keys and values begin. Whole columns at a time; nothing is decoded.

    00 | id, 4 bytes big-endian | body          Confluent, Karapace, Redpanda, Apicurio since 3.0
    00 | id, 8 bytes big-endian | body          Apicurio before

A first byte of 0 proves nothing: numbers begin with it too. No registry gives a schema the id 0.
"""

from enum import StrEnum
from typing import Final

import numpy as np

from logkeep.formats.kafka import record_kernels as k
from logkeep.formats.kafka.record_kernels import Bytes, Longs
from logkeep.formats.kafka.records import RecordColumns

NO_BYTES: Final = -1
"""The key or value is null."""
NO_FRAME: Final = -2
_SHORT, _LONG = 5, 9


class RecordSide(StrEnum):
    KEY = "key"
    VALUE = "value"


_COLUMN = {RecordSide.KEY: k.KEY_AT, RecordSide.VALUE: k.VALUE_AT}


def sizes(records: RecordColumns, side: RecordSide) -> Longs:
    """The length of each key or value; -1 for null."""
    found: Longs = records.spans[:, _COLUMN[side] + 1].astype(np.int64)
    return found


def schema_ids(records: RecordColumns, side: RecordSide) -> Longs:
    """One id for each record; NO_BYTES or NO_FRAME where there is none."""
    starts, lengths = records.spans[:, _COLUMN[side]].astype(np.int64), sizes(records, side)
    ids = np.where(lengths < 0, NO_BYTES, NO_FRAME)
    rows = np.flatnonzero(lengths >= _SHORT)
    rows = rows[records.data[starts[rows]] == 0]
    found = _number(records.data, starts[rows] + 1)
    ids[rows[found > 0]] = found[found > 0]
    longer = rows[(found == 0) & (lengths[rows] >= _LONG)]
    found = _number(records.data, starts[longer] + _SHORT)
    ids[longer[found > 0]] = found[found > 0]
    return ids


def _number(data: Bytes, at: Longs) -> Longs:
    """Four bytes, big-endian, from each position."""
    number = np.zeros(len(at), np.int64)
    for byte in range(4):
        number = (number << 8) | data[at + byte].astype(np.int64)
    return number
