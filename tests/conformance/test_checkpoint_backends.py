"""Our state backends and the log in files keep every promise; broken ones are found out."""

from pathlib import Path

from logkeep.checkpoint.conformance.log_checks import run_log_checks
from logkeep.checkpoint.conformance.state_checks import run_state_checks
from logkeep.checkpoint.file_log.file_log import FileLog
from logkeep.checkpoint.state.backend import SnapshotInfo, StateBackend
from logkeep.checkpoint.state.memory_state import MemoryState
from logkeep.checkpoint.state.sqlite_state import SqliteState


def _log(directory: Path) -> FileLog:
    return FileLog(directory, segment_bytes=700)


def test_sqlite_keeps_every_promise(tmp_path: Path) -> None:
    outcomes = run_state_checks(lambda directory: SqliteState(directory / "state.sqlite"), tmp_path)
    assert len(outcomes) == 6
    assert [(one.title, one.problem) for one in outcomes if one.problem] == []


def test_the_dictionary_keeps_every_promise_but_survival(tmp_path: Path) -> None:
    outcomes = run_state_checks(lambda _: MemoryState(), tmp_path, survives=False)
    assert len(outcomes) == 5
    assert [(one.title, one.problem) for one in outcomes if one.problem] == []


def test_the_log_in_files_keeps_every_promise(tmp_path: Path) -> None:
    outcomes = run_log_checks(_log, tmp_path)
    assert len(outcomes) == 7
    assert [(one.title, one.problem) for one in outcomes if one.problem] == []


class _LateSnapshot(MemoryState):
    """Says a position that is not that of its content."""

    def snapshot(self, path: Path) -> SnapshotInfo:
        info = super().snapshot(path)
        return SnapshotInfo(info.position + 1, info.size_bytes)


class _ForgetfulLog(FileLog):
    """Removes one segment too many."""

    def compact(self, before: int) -> int:
        return super().compact(before + 20)


def _late(_: Path) -> StateBackend:
    return _LateSnapshot()


def test_a_broken_backend_is_found(tmp_path: Path) -> None:
    broken = [one.title for one in run_state_checks(_late, tmp_path, survives=False) if one.problem]
    assert broken == ["a snapshot contains one moment while another thread writes"]


def test_a_broken_log_is_found(tmp_path: Path) -> None:
    broken = [one.title for one in run_log_checks(lambda at: _ForgetfulLog(at, 700), tmp_path) if one.problem]
    assert broken == ["compaction removes only what is before the position"]


def test_a_dictionary_does_not_survive(tmp_path: Path) -> None:
    broken = [one.title for one in run_state_checks(lambda _: MemoryState(), tmp_path) if one.problem]
    assert broken == ["what was applied is there after a restart"]
