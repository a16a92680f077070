"""`kafka backup --format … --follow`, killed after every system call or store call, and followed again.

Rounds see a cluster that grows: records, a partition and a topic join, a group moves on, then nothing is new. A
kafka-backup-v1 directory has the bytes of one that was never killed; of objects, and of Avro and Parquet, where a round
that was cut begins other files, the records are equal, each once, in order. `make test` takes a part of the points.
"""

import shutil
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.kafka.dataset_upkeep.verify import GAP, missing_records, read_back
from logkeep.kafka.datasets.documents import read_document
from logkeep.kafka.datasets.follow import DatasetFollower, DatasetRound
from logkeep.kafka.datasets.format_table import FORMAT_NAMES
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.importing.reader import ReadNotes
from logkeep.kafka.importing.recognise import open_dataset
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.kafka.record.documents import CommitRecord, GroupRecord
from logkeep.store.base import Store
from logkeep.store.local.store import LocalStore
from tests.crash.points import DONE, KILLED, in_child
from tests.crash.seeds import seeded_part, soak_part
from tests.crash.system_calls import SystemCalls
from tests.support.faults.plan import KillAfter, Plan, no_faults
from tests.support.faults.store import FaultyStore
from tests.support.kafka.arrow_rows import ArrowRow
from tests.support.kafka.listed_exports import ListedExports, ListedSource, exportable, exportable_logs

CALLS = ("write", "writev", "fsync", "ftruncate", "link", "unlink", "rename", "rmdir", "mkdir")
_ENDS: tuple[dict[DatasetLog, int], ...] = (
    {DatasetLog("o", 0): 3},
    {DatasetLog("o", 0): 6, DatasetLog("o", 1): 2},
    {DatasetLog("o", 0): 9, DatasetLog("o", 1): 4, DatasetLog("later", 0): 2},
    {DatasetLog("o", 0): 9, DatasetLog("o", 1): 4, DatasetLog("later", 0): 2},
)
"""Of each log, by round."""


def _rows(log: DatasetLog, end: int) -> list[ArrowRow]:
    return [(o, 1000 - o, o % 2, b"k", b"v" * o if o % 3 else None, [(b"h", None)]) for o in range(end)]


def _source(number: int) -> ListedSource:
    ends = _ENDS[number]
    commits = tuple(CommitRecord(log.topic, log.partition, end - 1, end - 1, -1, "") for log, end in ends.items())
    found = exportable_logs(
        *(exportable(log.topic, log.partition, 0, end) for log, end in ends.items()),
        groups=[GroupRecord("g", "classic", "Empty", "consumer", commits)],
    )
    return ListedSource(found, {log: _rows(log, end) for log, end in ends.items()})


@dataclass
class Rounds:
    """One follower: the stop, the rounds, and a file with the number of the current one."""

    exports: ListedExports
    number_file: Path
    number: int = field(init=False)

    def __post_init__(self) -> None:
        self.number = int(self.number_file.read_text()) if self.number_file.exists() else 0
        self._task = self.exports.task()

    @property
    def requested(self) -> bool:
        return self.number >= len(_ENDS)

    def wait(self, seconds: float) -> None:
        self.number += 1
        self.number_file.write_text(str(self.number))

    def raising(self) -> nullcontext[None]:
        return nullcontext()

    def follow(self) -> list[DatasetRound]:
        done = list[DatasetRound]()

        def one_round() -> object:
            return self._task.run(_source(min(self.number, len(_ENDS) - 1)), lambda _: InlineEngine())

        DatasetFollower(one_round, self, 0, done.append).run()  # type: ignore[arg-type]
        return done


@dataclass(frozen=True)
class Followed:
    """A dataset of one format below a directory, written as files or as objects."""

    form: str
    root: Path
    objects: bool = False

    @property
    def place(self) -> Path:
        return self.root / "dataset"

    def follow(self, plan: Plan = no_faults) -> int:
        """Tells how many store calls were made."""
        self.place.mkdir(parents=True, exist_ok=True)
        faulty = FaultyStore(LocalStore(self.place), plan)
        exports = ListedExports(faulty if self.objects else self.place, self.form, segment_bytes=100)
        Rounds(exports, self.root / "round").follow()
        return len(faulty.calls)

    def files(self) -> dict[str, bytes]:
        found = (path for path in self.place.rglob("*") if path.is_file())
        names = {str(path.relative_to(self.place)): path.read_bytes() for path in found}
        return {name: data for name, data in names.items() if not name.startswith((".logkeep/", ".partial/"))}

    def records(self) -> dict[DatasetLog, list[object]]:
        store: Store = LocalStore(self.place)
        return {
            DatasetLog(each.topic, each.partition): [
                tuple(row.values()) for batch in each.records(ReadNotes()) for row in batch.to_pylist()
            ]
            for each in open_dataset(store).partitions
        }

    def groups(self) -> dict[str, bytes]:
        return {name: data for name, data in self.files().items() if "/consumer_offsets_" in name}

    def has_no_gap(self, point: int) -> None:
        """As `verify` says, before anything is written again."""
        if not self.place.is_dir():
            return
        target = DatasetTarget(LocalStore(self.place))
        document = read_document(target)
        if document is not None and any(target.names("topics/")):
            checked = list(read_back(target))
            found = [*missing_records(document.logs, checked), *(f for each in checked for f in each.findings)]
            assert not [f for f in found if f.code == GAP], f"killed at {point}"

    def notes_all_files(self, point: int) -> None:
        document = read_document(DatasetTarget(LocalStore(self.place)))
        assert document is not None
        noted = sum(len(each.starts) for each in document.logs)
        files = [name for name in self.files() if name.endswith((".data", ".parquet"))]
        assert noted == len(files), f"killed at {point}"

    def is_as(self, whole: "Followed", point: int) -> None:
        if self.form == "kafka-backup-v1" and not self.objects:
            assert self.files() == whole.files(), f"killed at {point}"
        assert self.records() == whole.records(), f"killed at {point}"
        assert self.groups() == whole.groups(), f"killed at {point}"
        assert not [f for p in read_back(DatasetTarget(LocalStore(self.place))) for f in p.findings]
        self.notes_all_files(point)
        shutil.rmtree(self.root)


def _at_system_calls(form: str, tmp_path: Path, chosen: Callable[[Sequence[int]], Sequence[int]]) -> tuple[int, int]:
    whole, told = Followed(form, tmp_path / "whole"), tmp_path / "told"

    def victim(followed: Followed, die_at: int) -> None:
        calls = SystemCalls(CALLS, die_at, told)
        calls.watch()
        followed.follow()
        calls.tell()

    assert in_child(lambda: victim(whole, -1)) == DONE
    assert {log: len(rows) for log, rows in whole.records().items()} == _ENDS[-1]
    points = int(told.read_text())
    done = 0
    for point in chosen(range(2, points + 1, 2)):  # right after each call
        again = Followed(form, tmp_path / str(point))
        assert in_child(lambda f=again, k=point: victim(f, k)) == KILLED, f"point {point} was never reached"  # type: ignore[misc]  # bound now
        again.has_no_gap(point)
        again.follow()
        again.is_as(whole, point)
        done += 1
    return done, points // 2


def _at_store_calls(form: str, tmp_path: Path, chosen: Callable[[Sequence[int]], Sequence[int]]) -> tuple[int, int]:
    whole = Followed(form, tmp_path / "whole", objects=True)
    calls, done = whole.follow(), 0
    for point in chosen(range(1, calls + 1)):
        again = Followed(form, tmp_path / str(point), objects=True)
        done += in_child(lambda f=again, k=point: f.follow(KillAfter(k))) == KILLED  # type: ignore[misc]  # bound now
        again.has_no_gap(point)
        again.follow()
        again.is_as(whole, point)
    return done, calls


_PLACES = {"directory": _at_system_calls, "objects": _at_store_calls}


@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("form", FORMAT_NAMES)
def test_a_follower_is_killed_at_a_few_steps(form: str, place: str, tmp_path: Path) -> None:
    what = f"follow of {form}, {place}"
    killed, calls = _PLACES[place](form, tmp_path, lambda points: seeded_part(what, list(points), 24))
    assert (killed > 1, calls > 100) == (True, True)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("form", FORMAT_NAMES)
def test_a_follower_is_killed_at_every_step(form: str, place: str, tmp_path: Path) -> None:
    what = f"follow of {form}, {place}"
    killed, calls = _PLACES[place](form, tmp_path, lambda points: soak_part(what, list(points)))
    print(f"{what}: killed after {killed} of {calls} calls, every time equal")
