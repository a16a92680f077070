"""Calls of the kernels that read records of applications, and what compiles them."""

import numpy as np

from logkeep.formats.applications import event_kernels as e
from logkeep.formats.applications import mark_kernels as m
from logkeep.formats.kafka.records import RecordColumns


def warm(records: RecordColumns) -> None:
    """Call every kernel with the argument types that are used elsewhere. The records are not events."""
    rows, data = np.zeros(1, np.int64), records.data
    empty, ends = np.frombuffer(bytes(16), np.uint8), np.zeros(1, np.int64)
    m.read_marks(data, records.spans, empty, empty, ends, np.empty((len(records), m.COLUMNS), np.int64))
    events, counts = np.zeros((1, e.EVENT_COLUMNS), np.int64), np.zeros(1, np.int64)
    e.count_events(data, records.spans, rows, events)
    events[:] = 0
    e.read_writes(data, rows, events, np.empty((0, e.WRITE_COLUMNS), np.uint64), np.uint64(1), np.uint64(2))
    e.read_sends(data, events, 1, np.empty((0, e.SEND_COLUMNS), np.int64))
    e.count_acks(data, records.spans, rows, counts)
    counts[:] = 0
    e.read_acks(data, records.spans, rows, counts, np.empty((0, 3), np.int64))
