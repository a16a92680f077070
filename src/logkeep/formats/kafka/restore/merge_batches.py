"""Merges neighbouring small batches into larger ones before they are sent.

A broker answers some thousand requests per second and partition, and a request has one batch of it: small batches limit
a restore, not bytes. Batches join while each is smaller than `small_bytes`, they have the same codec, no offset is
missing between them in the target, and the result has at most `most_bytes`; a batch that finds no neighbour is sent as
it is, and is not copied. Sizes are those of the records before compression, for a codec with room for its worst case.

So batches depend on their sequence and the rule alone: not on the parts in which they arrive, and not on what a
compressor makes of them. Consumers see the same records, with the same offsets and times: producer, epoch and
transaction of archived batches are not sent anyway (`producer_stamp`), and append times were encoded before
(`send_batches`). A batch whose records cannot be read is not merged.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from logkeep.formats.kafka.batches import CODEC_MASK, HEADER, HEADER_BYTES, Batches, Longs
from logkeep.formats.kafka.encode import encode
from logkeep.formats.kafka.encode_kernels import gather
from logkeep.formats.kafka.records import Malformed, RecordColumns, decode
from logkeep.formats.kafka.restore.merge_kernels import begin_groups
from logkeep.formats.kafka.restore.record_bodies import RecordBodies, joined
from logkeep.formats.kafka.restore.send_batches import OffsetHole, Outgoing, merged_runs

CHUNK_BYTES = 1 << 20
"""Batches are collected up to this size before they are merged: small archived objects hold few of them."""
_CODEC_SLACK_BYTES = 64
"""With a sixth of the plain bytes: no codec makes incompressible bytes larger than that."""

Flags = npt.NDArray[np.bool_]
Size = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class BatchMergeRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which batches are merged; part of a stored plan."""

    rule: Literal[1] = 1
    """This module's rule. Another one gets another number."""
    small_bytes: Size
    """Only batches below this size are merged."""
    most_bytes: Size
    """The largest merged batch."""


def merged(parts: Iterable[Outgoing | OffsetHole], rule: BatchMergeRule) -> Iterator[Outgoing | OffsetHole]:
    """The same records and holes in fewer batches."""
    held, fresh_bytes = list[Outgoing](), 0
    for part in parts:
        if isinstance(part, OffsetHole):
            yield from _merge(held, rule, ended=True)[0]
            yield part
            held, fresh_bytes = [], 0
        elif not held and not (part.sizes < rule.small_bytes).any():
            yield part
        else:
            held.append(part)
            fresh_bytes += int(part.sizes.sum())
            if fresh_bytes >= CHUNK_BYTES:
                ready, held = _merge(held, rule, ended=False)
                fresh_bytes = 0
                yield from ready
    yield from _merge(held, rule, ended=True)[0]


def _merge(held: Sequence[Outgoing], rule: BatchMergeRule, *, ended: bool) -> tuple[list[Outgoing], list[Outgoing]]:
    """What can be sent now; and the batches of the last group, to which more may belong unless all `ended`."""
    if not held:
        return [], []
    whole = _joined(held)
    groups = _Grouping(whole, rule)
    closed = groups.run(ended=ended)
    ready = [groups.result(closed)] if closed else []
    return ready, [_part(whole, closed, len(whole))] if closed < len(whole) else []


@dataclass(frozen=True)
class _Encoded:
    """Merged batches back to back, and the first batch of each."""

    buffer: npt.NDArray[np.uint8]
    sizes: Longs
    firsts: Longs


class _Grouping:
    """Decides on the groups of some batches, and encodes those that have several."""

    def __init__(self, whole: Outgoing, rule: BatchMergeRule) -> None:
        self._whole, self._rule = whole, rule
        headers = whole.first_heads().view(HEADER).reshape(-1)
        self._codecs = headers["attributes"].astype(np.int64) & CODEC_MASK
        self._batches = Batches(headers, whole.positions)
        self._begins = np.ones(len(whole), np.uint8)
        self._encoded: list[_Encoded] = []
        self._waiting: list[RecordBodies] = []
        self._waiting_batches = np.empty(0, np.int64)

    def run(self, *, ended: bool) -> int:
        """Returns how many batches are in groups that are complete."""
        some, begins = self._candidates()
        self._begins[some] = begins
        last_is_open = not ended and bool(self._whole.sizes[-1] < self._rule.small_bytes)
        done = 0
        chosen = Batches(self._batches.headers[some], self._batches.positions[some])
        for part in decode(self._whole.buffer.data, chosen) if len(some) else ():
            if isinstance(part, Malformed):
                self._close(0)
                self._begins[some[done : done + 2]] = 1
                done += 1
            else:
                count = int(part.batch[-1]) + 1
                self._take(part, some[done : done + count])
                done += count
        if not last_is_open:
            self._close(0)
            return len(self._whole)
        last = len(self._whole) - 1
        open_first = self._close(int(last in self._waiting_batches[-1:]))
        return open_first if open_first >= 0 else last

    def result(self, closed: int) -> Outgoing:
        """All complete groups in order."""
        if not self._encoded:
            return _part(self._whole, 0, closed)
        firsts = np.flatnonzero(self._begins[:closed])
        sizes, records = self._whole.sizes[firsts], np.add.reduceat(self._whole.records[:closed], firsts)
        for each in self._encoded:
            sizes[np.searchsorted(firsts, each.firsts)] = each.sizes
        places = np.cumsum(sizes) - sizes
        buffer = np.empty(int(sizes.sum()), np.uint8)
        single = np.diff(firsts, append=closed) == 1
        gather(
            _readonly(self._whole.buffer), self._whole.positions[firsts[single]], sizes[single], buffer, places[single]
        )
        for each in self._encoded:
            there = places[np.searchsorted(firsts, each.firsts)]
            gather(_readonly(each.buffer), np.cumsum(each.sizes) - each.sizes, each.sizes, buffer, there)
        runs = _runs_of(self._whole.runs, 0, int(records.sum()))
        return Outgoing(buffer, places, sizes, records, self._whole.first_offsets[firsts], runs)

    def _candidates(self) -> tuple[Longs, npt.NDArray[np.uint8]]:
        """Batches with a neighbour that they may be merged with; and which of them have none before them."""
        small: Flags = self._whole.sizes < self._rule.small_bytes
        with_next: Flags = small[:-1] & small[1:] & (self._codecs[:-1] == self._codecs[1:])
        with_last = np.concatenate(([False], with_next))
        some = np.flatnonzero(with_last | np.concatenate((with_next, [False])))
        return some, (~with_last[some]).astype(np.uint8)

    def _take(self, records: RecordColumns, batches: Longs) -> None:
        self._waiting.append(RecordBodies.of(records))
        self._waiting_batches = np.concatenate((self._waiting_batches, batches))
        self._close(1)

    def _close(self, keep: int) -> int:
        """Encode the waiting groups, all but the last `keep`. Returns the first batch that still waits, or -1."""
        if not self._waiting:
            return -1
        bodies, batches = joined(self._waiting), self._waiting_batches
        afters, begins = np.cumsum(self._whole.records[batches]), self._begins[batches]
        begin_groups(bodies.ends, bodies.times_ms, afters, self._limits(batches), begins)
        self._begins[batches] = begins
        firsts = np.flatnonzero(begins)
        ends = np.append(firsts[1:], len(batches))
        left = int(ends[-1 - keep]) if len(firsts) > keep else 0
        self._encode(bodies, afters, batches, np.column_stack((firsts, ends))[: len(firsts) - keep])
        row = int(afters[left - 1]) if left else 0
        self._waiting = [bodies[row:]] if left < len(batches) else []
        self._waiting_batches = batches[left:]
        return int(batches[left]) if left < len(batches) else -1

    def _limits(self, batches: Longs) -> Longs:
        room = self._rule.most_bytes - HEADER_BYTES
        return np.where(self._codecs[batches] == 0, room, (room - _CODEC_SLACK_BYTES) * 6 // 7).astype(np.int64)

    def _encode(self, bodies: RecordBodies, afters: Longs, batches: Longs, groups: Longs) -> None:
        several = groups[groups[:, 1] - groups[:, 0] > 1]
        if not len(several):
            return
        before = np.concatenate(([0], afters))
        made = encode(bodies.columns(self._rule.most_bytes), before[several])
        self._encoded.append(_Encoded(made.buffer, made.sizes, batches[several[:, 0]]))


def _joined(several: Sequence[Outgoing]) -> Outgoing:
    if len(several) == 1:
        return several[0]
    starts = [int(each.positions[0]) for each in several]
    pieces = [
        each.buffer[at : int(each.positions[-1] + each.sizes[-1])] for each, at in zip(several, starts, strict=True)
    ]
    before = np.cumsum([0, *(len(piece) for piece in pieces[:-1])]).tolist()
    moved = [each.positions - at + to for each, at, to in zip(several, starts, before, strict=True)]
    return Outgoing(
        np.concatenate(pieces),
        np.concatenate(moved),
        np.concatenate([each.sizes for each in several]),
        np.concatenate([each.records for each in several]),
        np.concatenate([each.first_offsets for each in several]),
        merged_runs([each.runs for each in several]),
        has_crc=all(each.has_crc for each in several),
    )


def _part(whole: Outgoing, first: int, after: int) -> Outgoing:
    """Some of the batches, as they are."""
    if (first, after) == (0, len(whole)):
        return whole
    before, count = int(whole.records[:first].sum()), int(whole.records[first:after].sum())
    return Outgoing(
        whole.buffer,
        whole.positions[first:after],
        whole.sizes[first:after],
        whole.records[first:after],
        whole.first_offsets[first:after],
        _runs_of(whole.runs, before, before + count),
        has_crc=whole.has_crc,
    )


def _runs_of(runs: Longs, first: int, after: int) -> Longs:
    """The runs of the records `[first, after)`, counted from the first of all."""
    ends = np.cumsum(runs[:, 1])
    starts = ends - runs[:, 1]
    low, high = np.maximum(starts, first), np.minimum(ends, after)
    some = low < high
    return np.column_stack((runs[some, 0] + low[some] - starts[some], high[some] - low[some]))


def _readonly(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """As the kernel is compiled for."""
    shown = data.view()
    shown.flags.writeable = False
    return shown
