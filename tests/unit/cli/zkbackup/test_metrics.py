"""The metrics file: zkbackup's names beside the house's, and counters that go on counting."""

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from logkeep.cli.frame.metrics import METRICS, MetricSample, MetricsFile
from logkeep.cli.zkbackup.metrics import backup_failed, backup_samples, restore_failed, restore_samples, verify_samples

_DESIGN = {
    *("backup_duration_seconds", "backup_size_bytes", "backup_file_count", "backup_corruption_count", "backup_success"),
    *("backup_success_total", "backup_failure_total"),
    *("restore_duration_seconds", "restore_file_count", "restore_success"),
    *("verify_duration_seconds", "verify_valid_files", "verify_corrupted_files", "verify_repaired_files"),
}


def _taken() -> tuple[MetricSample, ...]:
    return backup_samples("zk:2181", took_s=12.5, ended_s=1000, size_bytes=99, files=7, damaged=1)


def _values(path: Path) -> dict[str, float]:
    families = text_string_to_metric_families(path.read_text())
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_every_name_of_the_design_is_written(tmp_path: Path) -> None:
    file = MetricsFile(tmp_path / "zk.prom")
    file.update(_taken())
    file.update(restore_samples("zk:2181", took_s=1, ended_s=1000, files=2))
    file.update(verify_samples("zk:2181", took_s=1, ended_s=1000, valid=5, damaged=0, repaired=1))
    found = _values(tmp_path / "zk.prom")
    assert {f"zkbackup_{name}" for name in _DESIGN} <= found.keys()
    assert (found["zkbackup_backup_size_bytes"], found["zkbackup_backup_duration_seconds"]) == (99, 12.5)
    assert found["logkeep_backup_last_success_timestamp_seconds"] == 1000
    assert found.keys() <= METRICS.keys()


def test_counters_count_and_gauges_tell_the_last_run(tmp_path: Path) -> None:
    file = MetricsFile(tmp_path / "zk.prom")
    for samples in (_taken(), backup_failed(1.0), backup_failed(2.0), _taken()):
        file.update(samples)
    found = _values(tmp_path / "zk.prom")
    assert (found["zkbackup_backup_success_total"], found["zkbackup_backup_failure_total"]) == (2, 2)
    assert found["zkbackup_backup_success"] == 1
    text = (tmp_path / "zk.prom").read_text()
    assert "# TYPE zkbackup_backup_success_total counter" in text
    assert "# TYPE zkbackup_backup_success gauge" in text


def test_a_failure_is_told_without_taking_the_last_success_away(tmp_path: Path) -> None:
    file = MetricsFile(tmp_path / "zk.prom")
    file.update(_taken())
    file.update([*backup_failed(1.0), *restore_failed(1.0)])
    found = _values(tmp_path / "zk.prom")
    assert (found["zkbackup_backup_success"], found["zkbackup_restore_success"]) == (0, 0)
    assert found["logkeep_backup_last_success_timestamp_seconds"] == 1000


@pytest.mark.parametrize(("code", "own", "house", "last"), [(10, 0, 0, 1000), (21, 0, 1, 2000), (2, 1, 1, 2000)])
def test_a_backup_that_is_damaged_or_lost_something_was_no_success(
    tmp_path: Path, code: int, own: int, house: int, last: int
) -> None:
    file = MetricsFile(tmp_path / "zk.prom")
    file.update(_taken())
    file.update(backup_samples("zk:2181", took_s=1, ended_s=2000, size_bytes=99, files=7, damaged=1, code=code))
    found = _values(tmp_path / "zk.prom")
    assert (found["zkbackup_backup_success"], found["zkbackup_backup_failure_total"]) == (own, 1 - own)
    assert found["logkeep_backup_success"] == house
    assert found["logkeep_backup_last_success_timestamp_seconds"] == last
