"""The type and the first text of record keys, as columns: the group, or the transactional id, in Kafka's own topics."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from logkeep.formats.datasets.arrow import binary_column
from logkeep.formats.kafka import record_kernels as k
from logkeep.formats.kafka.internal_topics.coordinator_records import RECORD_TYPES
from logkeep.formats.kafka.record_kernels import Bytes, Longs
from logkeep.formats.kafka.records import Flags, RecordColumns

NO_TYPE = -1
_NO_VALUE = -(2**15)
_APART = 2**16
NameTest = Callable[[str], bool]


def key_types(records: RecordColumns) -> npt.NDArray[np.int16]:
    """`NO_TYPE` where a key is shorter than a type."""
    at, sizes = records.spans[:, k.KEY_AT].astype(np.int64), records.spans[:, k.KEY_SIZE]
    return np.where(sizes >= 2, _int16(records.data, at, sizes >= 2), np.int16(NO_TYPE)).astype(np.int16)


def key_names(records: RecordColumns) -> pa.Array:
    """The text after the type, in bytes; null where the key is too short for it."""
    at, sizes = records.spans[:, k.KEY_AT].astype(np.int64), records.spans[:, k.KEY_SIZE].astype(np.int64)
    lengths = _int16(records.data, at + 2, sizes >= 4).astype(np.int64)
    fits = (sizes >= 4) & (lengths >= 0) & (lengths <= sizes - 4)
    return binary_column(records.data, at + 4, np.where(fits, lengths, -1))


def _int16(data: Bytes, at: Longs, there: Flags) -> npt.NDArray[np.int16]:
    """The number at each place; 0 where there is none."""
    found = np.zeros(len(at), np.uint16)
    own = at[there]
    found[there] = (data[own].astype(np.uint16) << 8) | data[own + 1]
    return found.view(np.int16)


class NameFilter:
    """Which records belong to the selected names. Every distinct name is tested once."""

    def __init__(self, test: NameTest | None) -> None:
        """None: all records, also those without a name."""
        self._test, self._known = test, dict[bytes | None, bool]()

    def selected(self, records: RecordColumns) -> Flags:
        if self._test is None:
            return np.ones(len(records), np.bool_)
        coded = key_names(records).dictionary_encode()
        chosen = [self._passes(name) for name in coded.dictionary.to_pylist()]
        indices = coded.indices.fill_null(len(chosen)).to_numpy(zero_copy_only=False)
        found: Flags = np.array([*chosen, False], np.bool_)[indices]
        return found

    @property
    def names(self) -> list[str]:
        """All that were seen."""
        return sorted(name.decode(errors="replace") for name in self._known if name is not None)

    @property
    def passed(self) -> bool:
        """Whether a record belonged to a selected name."""
        return any(self._known.values())

    def _passes(self, name: bytes) -> bool:
        if name not in self._known:
            self._known[name] = self._test is None or self._test(name.decode(errors="replace"))
        return self._known[name]


def unknown_records(topic: str, records: RecordColumns) -> dict[str, int]:
    """How many records have a type, or a value of a version, that this release does not know; by what it is."""
    types, known = key_types(records).astype(np.int32), RECORD_TYPES[topic]
    at, sizes = records.spans[:, k.VALUE_AT].astype(np.int64), records.spans[:, k.VALUE_SIZE]
    versions = np.where(sizes >= 2, _int16(records.data, at, sizes >= 2), np.int16(_NO_VALUE)).astype(np.int32)
    pairs, counts = np.unique(types * _APART + versions, return_counts=True)
    found: dict[str, int] = {}
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        number, version = divmod(pair + _APART // 2, _APART)
        version -= _APART // 2
        if number not in known:
            what = f"type {number}" if number >= 0 else "no type"
        elif version == _NO_VALUE or version in known[number].value.versions:
            continue
        else:
            what = f"version {version} of type {number}"
        found[what] = found.get(what, 0) + count
    return found
