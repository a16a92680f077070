"""Random pasts of an ensemble: what was committed, and what each member's disk kept of it.

The rules are those of a real ensemble: a committed transaction was logged by a majority of the voters; a member that
was away lacks a run of them and was brought up to date by a snapshot; one that was cut off may keep proposals behind
the end of an epoch that nobody committed. Then files get lost.
"""

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import strategies as st

from logkeep.formats.zookeeper.names import counter_of, epoch_of, follows
from logkeep.model.segments import Proof
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, LogFileEnding, Member
from logkeep.zookeeper.timeline.holdings import Holdings

NAMES = ("a", "b", "c")
QUORUM = 2


@dataclass(frozen=True)
class Past:
    committed: tuple[int, ...]
    times: dict[int, int]
    holdings: Holdings

    def true_run(self, start: int, until: int) -> list[int]:
        """Every transaction behind a snapshot's, up to a target."""
        return [zxid for zxid in self.committed if start < zxid <= until]


class DictTimes:
    """Times of all transactions; the judge's own."""

    def __init__(self, times: dict[int, int]) -> None:
        self._times = times

    def time_of(self, log: ArchivedLog, zxid: int) -> int | None:
        return self._times.get(zxid)

    def first_later(self, log: ArchivedLog, first: int, last: int, time_ms: int) -> tuple[int, int] | None:
        for zxid in records_of(log):
            if first <= zxid <= last and self._times[zxid] > time_ms:
                return zxid, self._times[zxid]
        return None


def records_of(log: ArchivedLog) -> list[int]:
    """One after the other, the slow way."""
    following, found = dict(log.borders), [log.first]
    while found[-1] != log.last:
        found.append(following.get(found[-1], found[-1] + 1))
    return found


@st.composite
def pasts(draw: st.DrawFn, *, digests: bool = False, members: int = 3) -> Past:
    committed = _committed(draw)
    proposed: dict[str, list[int]] = {name: [] for name in NAMES[:members]}
    cut_off = draw(st.sampled_from(NAMES[:members]))
    for last, following in pairwise(committed):
        if members > 1 and epoch_of(last) != epoch_of(following) and draw(st.booleans()):
            proposed[cut_off] += [last + number for number in range(1, draw(st.integers(1, 3)) + 1)]
    away = draw(st.sampled_from(NAMES[:members])) if members > 1 else None
    lacking = set(_run(draw, committed)) if away is not None else set()
    times = {zxid: draw(st.integers(0, 40)) for zxid in {*committed, *proposed[cut_off]}}
    logs: list[ArchivedLog] = []
    for name, more in proposed.items():
        disk = sorted({*committed, *more} - (lacking if name == away else set()))
        files = _files(draw, disk, name, times, digests)
        logs += [log for log in files if draw(st.integers(0, 9))]
    snapshots = _snapshots(draw, committed, list(proposed))
    role = "standalone" if members == 1 else "follower"
    known = tuple(Member(name=name, role=role) for name in proposed)
    return Past(tuple(committed), times, Holdings(tuple(snapshots), tuple(logs), known))


def _committed(draw: st.DrawFn) -> list[int]:
    found: list[int] = []
    epoch = 0
    for _ in range(draw(st.integers(1, 4))):
        epoch += draw(st.sampled_from([1, 1, 1, 2]))
        found += [(epoch << 32) + counter for counter in range(1, draw(st.integers(1, 6)) + 1)]
    return found


def _run(draw: st.DrawFn, zxids: list[int]) -> list[int]:
    start = draw(st.integers(0, len(zxids)))
    return zxids[start : start + draw(st.integers(0, 5))]


def _files(draw: st.DrawFn, disk: list[int], name: str, times: dict[int, int], digests: bool) -> list[ArchivedLog]:
    """A disk's records in files: a new one wherever a record does not follow, and now and then elsewhere."""
    runs: list[list[int]] = []
    for zxid in disk:
        if runs and follows(runs[-1][-1], zxid) and draw(st.booleans()):
            runs[-1].append(zxid)
        else:
            runs.append([zxid])
    before: list[int | None] = [None, *(run[-1] for run in runs)][: len(runs)]
    return [_log(run, last, name, times, digests) for run, last in zip(runs, before, strict=True)]


def _log(run: list[int], before: int | None, name: str, times: dict[int, int], digests: bool) -> ArchivedLog:
    pairs = pairwise([*([] if before is None else [before]), *run])
    borders = tuple((a, b) for a, b in pairs if epoch_of(a) != epoch_of(b) and follows(a, b))
    return ArchivedLog(
        member=name,
        history="1",
        name=f"log.{run[0]:x}",
        first=run[0],
        last=run[-1],
        records=len(run),
        min_time_ms=min(times[zxid] for zxid in run),
        max_time_ms=max(times[zxid] for zxid in run),
        last_adler=0,
        ending=LogFileEnding.CLEAN,
        proof=Proof.PROVEN,
        size_bytes=0,
        sha256="",
        borders=borders,
        digests=digests,
    )


def _snapshots(draw: st.DrawFn, committed: list[int], names: list[str]) -> list[ArchivedSnapshot]:
    starts = {0: 0} | {zxid: number + 1 for number, zxid in enumerate(committed)}
    starts |= {zxid - 1: number for number, zxid in enumerate(committed) if counter_of(zxid) == 1}
    found = []
    for zxid in draw(st.lists(st.sampled_from(sorted(starts)), max_size=4, unique=True)):
        window = committed[starts[zxid] :][: draw(st.integers(0, 3))]
        end = window[-1] if window else zxid
        known, bounded = draw(st.booleans()), draw(st.booleans())
        found.append(
            ArchivedSnapshot(
                member=draw(st.sampled_from(names)),
                history="1",
                name=f"snapshot.{zxid:x}",
                zxid=zxid,
                fuzzy_end=end if known else None,
                bound=end if bounded and not known else None,
                digest_zxid=0,
                nodes=0,
                size_bytes=0,
                sha256="",
            )
        )
    return found
