"""Segment rows as columns: checked once, always sorted, without a Python object per row.

A `SegmentTable` promises that its rows are legal segments (the rules of `model.segments.Segment`), in strictly rising
order of log, start and token, so that no object is listed twice and the rows of a log are adjacent.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from logkeep.errors import Damaged
from logkeep.formats.arrow_start import start_arrow
from logkeep.model.ids import source_name
from logkeep.model.ranges import Range
from logkeep.model.segments import Codec, Collection, LogName, Proof, Segment

start_arrow()

_Numbers = NDArray[np.int64]
_Mask = NDArray[np.bool_]

_TEXT_PATTERNS = {
    "collection": rf"\A(?:{'|'.join(Collection)})\z",
    "name": r"\A[A-Za-z0-9._-]{1,249}\z",
    "history": r"\A[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}\z",
    "proof": rf"\A(?:{'|'.join(Proof)})\z",
    "codec": rf"\A(?:{'|'.join(Codec)})\z",
    "digest": r"\A[!-~]{0,128}\z",
}
"""Patterns of the text columns, for the RE2 kernels: the rules of the model, and a limit on digests."""

TEXT_COLUMNS = tuple(_TEXT_PATTERNS)
_LOG_COLUMNS = ("collection", "name", "history", "partition")
_NON_NEGATIVE = ("partition", "start", "end", "first", "records", "stored_bytes", "plain_bytes")
# Record times are not checked: producers may write any time, and an odd one must not make a log unarchivable.

_TEXT = pa.dictionary(pa.int32(), pa.string())

SCHEMA = pa.schema(
    [
        pa.field(name, kind, nullable=False)
        for name, kind in (
            ("collection", _TEXT),
            ("name", _TEXT),
            ("history", _TEXT),
            ("partition", pa.int32()),
            ("start", pa.int64()),
            ("end", pa.int64()),
            ("first", pa.int64()),
            ("token", pa.binary(8)),
            ("has_object", pa.bool_()),
            ("proof", _TEXT),
            ("records", pa.int64()),
            ("stored_bytes", pa.int64()),
            ("plain_bytes", pa.int64()),
            ("base_time_ms", pa.int64()),
            ("max_time_ms", pa.int64()),
            ("sha256", pa.binary(32)),
            ("plain_sha256", pa.binary(32)),
            ("codec", _TEXT),
            ("digest", _TEXT),
        )
    ]
)

_SLICE_ROWS = 65_536
"""Rows that are turned into Python objects at a time."""


@dataclass(frozen=True, eq=False)
class SegmentTable:
    """Rows of segments as one Arrow table of `SCHEMA`. Made by the class methods, which check and sort."""

    arrow: pa.Table

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def __eq__(self, other: object) -> bool:
        # Two equal columns may number their dictionaries differently; the rows are what counts.
        return isinstance(other, SegmentTable) and bool(_as_text(self.arrow).equals(_as_text(other.arrow)))

    __hash__ = None  # type: ignore[assignment]  # compared by a million rows: not meant as a key

    @classmethod
    def from_segments(cls, segments: Iterable[Segment]) -> "SegmentTable":
        """A table of rows in any order. Raises `Damaged` for rows that a later read would refuse."""
        rows = [_row(segment) for segment in segments]
        columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
        try:
            arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
        except (pa.ArrowInvalid, OverflowError) as error:
            raise Damaged(f"a segment does not fit into a row: {error}") from None
        return cls.validated(_sorted(_canonical(pa.Table.from_arrays(arrays, schema=SCHEMA))))

    @classmethod
    def validated(cls, table: pa.Table) -> "SegmentTable":
        """Check untrusted rows, column by column; `Damaged` names the first bad row."""
        if not table.schema.equals(SCHEMA):
            raise Damaged("the columns are not those of segment rows")
        _check_memory(table)
        table = _canonical(table)
        _check_texts(table)
        _check_numbers(table)
        _check_order(table)
        return cls(table)

    @classmethod
    def merge(cls, tables: Sequence["SegmentTable"]) -> "SegmentTable":
        """All rows of all tables; `Damaged` if two of them list the same object."""
        merged = _sorted(_canonical(pa.concat_tables([t.arrow for t in tables] or [SCHEMA.empty_table()])))
        _check_order(merged)
        return cls(merged)

    def with_objects(self) -> "SegmentTable":
        """The rows with an object; the others only cover a range without records."""
        return SegmentTable(self.arrow.filter(self.arrow.column("has_object")).combine_chunks())

    def to_segments(self) -> Iterator[Segment]:
        """One value per row: for small tables."""
        for batch in self.arrow.to_batches(max_chunksize=_SLICE_ROWS):
            for row in batch.to_pylist():
                yield _segment(row)

    def logs(self) -> list[LogName]:
        """Every log that has a row, in order."""
        return [_log_name(row) for row in self._log_rows(self._log_starts())]

    def log_runs(self) -> Iterator[tuple[LogName, int, int]]:
        """Every log with its rows `[first, last)`."""
        starts = self._log_starts()
        ends = np.append(starts[1:], len(self))[: len(starts)]
        for row, first, last in zip(self._log_rows(starts), starts, ends, strict=True):
            yield _log_name(row), int(first), int(last)

    def covering(self, cuts: Mapping[LogName, Range]) -> "SegmentTable":
        """The rows of the given logs that hold a position of `[log start, cut)`.

        An empty segment (a snapshot may be one) is at a position without holding it: it is included from the log's
        start up to and including the cut, because a state exactly at the cut restores it.
        """
        low, high, given = self._spans(cuts)
        start, end = _numbers(self.arrow, "start"), _numbers(self.arrow, "end")
        holds = (start < high) & (end > low) & (low < high)
        at_position = (start == end) & (start >= low) & (start <= high)
        return SegmentTable(self.arrow.filter(pa.array(given & np.where(start == end, at_position, holds))))

    def up_to(self, cuts: Mapping[LogName, Range]) -> "SegmentTable":
        """The rows of the given logs, shortened to their cut; the table itself if that changes nothing."""
        _, high, given = self._spans(cuts)
        start, end = _numbers(self.arrow, "start"), _numbers(self.arrow, "end")
        over = given & (end > high)
        if given.all() and not over.any():
            return self
        ends = pa.array(np.where(over, high, end), SCHEMA.field("end").type)
        shortened = self.arrow.set_column(SCHEMA.get_field_index("end"), SCHEMA.field("end"), ends)
        return SegmentTable(shortened.filter(pa.array(given & ~(over & (start >= high)))))

    def from_starts(self, cuts: Mapping[LogName, Range]) -> "SegmentTable":
        """The table without rows that end at or before the start of their log's cut; the table itself if there are
        none."""
        low, _, given = self._spans(cuts)
        kept = ~given | (_numbers(self.arrow, "end") > low) | (_numbers(self.arrow, "start") >= low)
        return self if kept.all() else SegmentTable(self.arrow.filter(pa.array(kept)).combine_chunks())

    def inside(self, spans: Mapping[LogName, Range]) -> "SegmentTable":
        """The rows of the given logs that end by the end of their span."""
        _, high, given = self._spans(spans)
        return SegmentTable(self.arrow.filter(pa.array(given & (_numbers(self.arrow, "end") <= high))))

    def without(self, tokens: Iterable[str]) -> "SegmentTable":
        """The rows of all other objects."""
        gone = pa.array([bytes.fromhex(token) for token in tokens], SCHEMA.field("token").type)
        named = pc.is_in(self.arrow.column("token"), value_set=gone)
        return SegmentTable(self.arrow.filter(pc.invert(named)).combine_chunks())

    def _spans(self, cuts: Mapping[LogName, Range]) -> tuple[_Numbers, _Numbers, _Mask]:
        """For every row: the start and the end of its log's cut, and whether one is given."""
        starts = self._log_starts()
        wanted = [cuts.get(_log_name(row)) for row in self._log_rows(starts)]
        spans = [span or Range(0, 0) for span in wanted]
        lengths = np.diff(np.append(starts, len(self)))
        low = np.repeat(np.array([s.start for s in spans], np.int64), lengths)
        high = np.repeat(np.array([s.end for s in spans], np.int64), lengths)
        return low, high, np.repeat(np.array([w is not None for w in wanted], np.bool_), lengths)

    def object_names(self, source: str) -> Iterator[str]:
        """The name of every row's object in the repository, in the order of the rows."""
        root = f"sources/{source_name(source)}"
        for first in range(0, len(self), _SLICE_ROWS):
            yield from SegmentTable(self.arrow.slice(first, _SLICE_ROWS))._names(root)

    def _names(self, root: str) -> list[str]:
        starts = self._log_starts()
        folders = [
            f"{root}/{log.collection}/{log.name}/{log.history}/partition={log.partition}/"
            for log in map(_log_name, self._log_rows(starts))
        ]
        run = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(self))))
        position = pc.utf8_lpad(pc.cast(_column(self.arrow, "first"), pa.string()), width=20, padding="0")
        joined = pc.binary_join_element_wise(
            pa.array(folders, pa.string()).take(pa.array(run)), position, ".", _hex(self.arrow), self._suffixes(), ""
        )
        names: list[str] = joined.to_pylist()
        return names

    def _suffixes(self) -> pa.Array:
        collections, codecs = _column(self.arrow, "collection"), _column(self.arrow, "codec")
        endings = [
            (".snapshot" if collection == Collection.SNAPSHOTS else ".log") + Codec(codec).suffix
            for collection in collections.dictionary.to_pylist()
            for codec in codecs.dictionary.to_pylist()
        ]
        which = _indices(collections) * len(codecs.dictionary) + _indices(codecs)
        return pa.array(endings, pa.string()).take(pa.array(which))

    def _log_starts(self) -> _Numbers:
        """The first row of each log."""
        changes = np.zeros(len(self), np.bool_)
        changes[:1] = True
        for key in _log_keys(self.arrow):
            changes[1:] |= key[1:] != key[:-1]
        return np.flatnonzero(changes)

    def _log_rows(self, rows: _Numbers) -> Iterator[dict[str, str | int]]:
        taken: list[dict[str, str | int]] = self.arrow.select(_LOG_COLUMNS).take(pa.array(rows)).to_pylist()
        return iter(taken)


def _row(segment: Segment) -> tuple[object, ...]:
    log = segment.log
    return (
        *(str(log.collection), log.name, log.history, log.partition),
        *(segment.start, segment.end, segment.first, bytes.fromhex(segment.token)),
        *(segment.has_object, str(segment.proof)),
        *(segment.records, segment.stored_bytes, segment.plain_bytes, segment.base_time_ms, segment.max_time_ms),
        *(bytes.fromhex(segment.sha256), bytes.fromhex(segment.plain_sha256), str(segment.codec), segment.digest),
    )


def _segment(row: dict[str, object]) -> Segment:
    plain = {name: value.hex() if isinstance(value, bytes) else value for name, value in row.items()}
    log = _log_name({name: plain.pop(name) for name in _LOG_COLUMNS})
    kinds = {"codec": Codec(str(plain["codec"])), "proof": Proof(str(plain["proof"]))}
    return Segment(log=log, **{**plain, **kinds})  # type: ignore[arg-type]  # as in SCHEMA


def _log_name(row: Mapping[str, object]) -> LogName:
    return LogName(
        Collection(str(row["collection"])), str(row["name"]), str(row["history"]), int(str(row["partition"]))
    )


def _as_text(table: pa.Table) -> pa.Table:
    return table.cast(pa.schema([f.with_type(pa.string()) if f.type == _TEXT else f for f in SCHEMA]))


def _column(table: pa.Table, name: str) -> pa.Array:
    """A column as one array."""
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _numbers(table: pa.Table, name: str) -> _Numbers:
    numbers: _Numbers = _column(table, name).to_numpy(zero_copy_only=False)
    return numbers


def _indices(array: pa.Array) -> _Numbers:
    indices: NDArray[np.int32] = array.indices.to_numpy(zero_copy_only=False)
    return indices.astype(np.int64)


def _tokens(table: pa.Table) -> NDArray[np.uint8]:
    array = _column(table, "token")
    start = array.offset * 8
    return np.frombuffer(array.buffers()[1] or b"", np.uint8)[start : start + len(array) * 8].reshape(-1, 8)


_HEX_DIGITS = np.frombuffer(bytes(range(256)).hex().encode(), np.uint8).reshape(256, 2)


def _hex(table: pa.Table) -> pa.Array:
    """The tokens as 16 hex digits each."""
    digits = np.ascontiguousarray(_HEX_DIGITS[_tokens(table)])
    offsets = np.arange(len(table) + 1, dtype=np.int32) * 16
    return pa.StringArray.from_buffers(len(table), pa.py_buffer(offsets), pa.py_buffer(digits))


def _log_keys(table: pa.Table) -> list[_Numbers]:
    """Numbers in the sort order of logs: dictionaries are sorted, so an index is a rank."""
    return [*(_indices(_column(table, name)) for name in _LOG_COLUMNS[:3]), _numbers(table, "partition")]


def _sort_keys(table: pa.Table) -> list[NDArray[np.int64] | NDArray[np.uint64]]:
    tokens = _tokens(table).view(">u8").reshape(-1).astype(np.uint64)
    return [*_log_keys(table), _numbers(table, "start"), tokens]


def _canonical(table: pa.Table) -> pa.Table:
    """The same rows in one chunk, each text column over one sorted dictionary."""
    table = table.unify_dictionaries().combine_chunks()
    for index, field in enumerate(SCHEMA):
        if field.type == _TEXT:
            table = table.set_column(index, field, _with_sorted_dictionary(_column(table, field.name)))
    return table


def _with_sorted_dictionary(array: pa.DictionaryArray) -> pa.DictionaryArray:
    values = pc.unique(array.dictionary)
    values = values.take(pc.array_sort_indices(values))
    ranks = pc.index_in(array.dictionary, value_set=values)
    return pa.DictionaryArray.from_arrays(ranks.take(array.indices), values)


def _sorted(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.lexsort(_sort_keys(table)[::-1]))).combine_chunks()


def _check_memory(table: pa.Table) -> None:
    """No nulls, dictionary indices in range, text in UTF-8: all later kernels rely on this."""
    try:
        table.validate(full=True)
    except pa.ArrowException as error:
        raise Damaged(f"the columns are inconsistent: {error}") from None
    for name, column in zip(table.column_names, table.columns, strict=True):
        _refuse(column.is_null().to_numpy() if column.null_count else None, f"{name} is missing")
        if column.type == _TEXT and any(chunk.dictionary.null_count for chunk in column.chunks):
            raise Damaged(f"the dictionary of {name} has an empty entry")


def _check_texts(table: pa.Table) -> None:
    for name, pattern in _TEXT_PATTERNS.items():
        array = _column(table, name)
        legal = pc.match_substring_regex(array.dictionary, pattern)
        if name == "name":
            legal = pc.and_not(legal, pc.is_in(array.dictionary, pa.array([".", ".."])))
        for bad in np.flatnonzero(~legal.to_numpy(zero_copy_only=False)):
            text = array.dictionary[int(bad)].as_py()
            _refuse(_indices(array) == bad, f"{text[:100]!r} is not a legal {name}")
            raise Damaged(f"{text[:100]!r} is not a legal {name}", subject="dictionary")


def _check_numbers(table: pa.Table) -> None:
    for name in _NON_NEGATIVE:
        _refuse(_numbers(table, name) < 0, f"{name} is negative")
    _refuse(_numbers(table, "start") > _numbers(table, "end"), "the range runs backwards")


def _check_order(table: pa.Table) -> None:
    """Strictly rising by log, start and token."""
    same: _Mask = np.ones(max(0, len(table) - 1), np.bool_)
    falls: _Mask = np.zeros_like(same)
    for key in _sort_keys(table):
        falls |= same & (key[:-1] > key[1:])
        same &= key[:-1] == key[1:]
    _refuse(np.append([False], falls), "the rows are not in order")
    _refuse(np.append([False], same), "the same object is listed twice")


def _refuse(bad: _Mask | None, what: str) -> None:
    if bad is not None and bad.any():
        raise Damaged(what, subject=f"row {int(bad.argmax())}")
