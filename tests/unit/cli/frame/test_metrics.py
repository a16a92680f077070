"""The Prometheus textfile: merged, atomic, ours alone; and the alert rules that use it."""

import os
import re
import threading
from pathlib import Path

import pytest
import yaml

from logkeep.cli.frame.metrics import METRICS, MetricSample, MetricsFile, parse, render, sample
from logkeep.errors import ConfigError
from tests.support.cli.processes import ROOT, TRIAL, logkeep
from tests.support.other_user import give_to_other


def test_values_of_other_runs_stay(tmp_path: Path) -> None:
    file = MetricsFile(tmp_path / "logkeep.prom")
    file.update([sample("logkeep_backup_success", 1, source="a"), sample("logkeep_backup_success", 1, source='b"\\\n')])
    file.update([sample("logkeep_backup_success", 0, source="a"), sample("logkeep_verify_valid_files", 7, source="a")])
    found = {s.key: s.value for s in parse(file.path.read_text())}
    assert found == {
        ("logkeep_backup_success", (("source", "a"),)): 0.0,
        ("logkeep_backup_success", (("source", 'b"\\\n'),)): 1.0,
        ("logkeep_verify_valid_files", (("source", "a"),)): 7.0,
    }
    assert file.path.stat().st_mode & 0o777 == 0o644
    assert [p.name for p in tmp_path.iterdir()] == ["logkeep.prom"]


def test_large_values_keep_every_digit() -> None:
    (back,) = parse(render([MetricSample("logkeep_backup_size_bytes", float(2**53 - 1), {"source": "a"})]))
    assert back.value == 2**53 - 1


def test_values_of_a_newer_release_stay() -> None:
    text = '# TYPE logkeep_new_thing gauge\nlogkeep_new_thing{source="a",zone="x"} 5.0\n'
    assert "logkeep_new_thing" in render(parse(text))


def test_runs_that_end_together_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "logkeep.prom"
    names = [f"s{i}" for i in range(16)]
    threads = [
        threading.Thread(target=lambda n=n: MetricsFile(path).update([sample("logkeep_backup_success", 1, source=n)]))
        for n in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(s.labels["source"] for s in parse(path.read_text())) == sorted(names)


@pytest.mark.parametrize("content", ("root:x:0:0\n", "other_metric 1\n", "hello world\n", "# only a comment\n", "\xff"))
def test_a_foreign_file_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.prom"
    path.write_text(content, encoding="latin-1")
    for step in (
        MetricsFile(path).check,
        lambda: MetricsFile(path).update([sample("logkeep_backup_success", 1, source="a")]),
    ):
        with pytest.raises(ConfigError, match="left alone"):
            step()
    assert path.read_text(encoding="latin-1") == content


def test_a_draft_does_not_follow_a_link_of_the_directorys_owner(tmp_path: Path) -> None:
    victim, collector = tmp_path / "victim", tmp_path / "collector"
    victim.write_text("ours\n")
    victim.chmod(0o600)
    collector.mkdir()
    for pid in range(os.getpid(), os.getpid() + 400):
        (collector / f".x.prom.{pid}.tmp").symlink_to(victim)
    if os.geteuid() == 0:
        give_to_other(collector)
    MetricsFile(collector / "x.prom").update([sample("logkeep_backup_success", 1, source="a")])
    assert (victim.read_text(), victim.stat().st_mode & 0o777) == ("ours\n", 0o600)
    assert (collector / "x.prom").stat().st_mode & 0o777 == 0o644


def test_the_file_itself_may_be_no_link_and_no_pipe(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("logkeep_backup_success 1.0\n")
    (tmp_path / "link.prom").symlink_to("secret")
    os.mkfifo(tmp_path / "pipe.prom")
    for name, what in (("link.prom", "symbolic link"), ("pipe.prom", "left alone")):
        with pytest.raises(ConfigError, match=what):
            MetricsFile(tmp_path / name).check()


def test_a_directory_that_every_user_can_write_to_is_refused_before_the_work(tmp_path: Path) -> None:
    (shared := tmp_path / "shared").mkdir()
    for mode, code in ((0o777, 40), (0o1777, 0)):
        shared.chmod(mode)
        done = logkeep("backup", "--source", "good", "--metrics-file", "shared/x.prom", home=tmp_path, program=TRIAL)
        assert (done.returncode, (shared / "x.prom").exists()) == (code, code == 0)


def test_a_draft_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    file = MetricsFile(tmp_path / "x.prom")
    with pytest.raises(UnicodeEncodeError):
        file.update([sample("logkeep_backup_success", 1, source="\ud800")])
    assert list(tmp_path.iterdir()) == []


def test_a_missing_directory_is_found_before_the_work(tmp_path: Path) -> None:
    done = logkeep("backup", "--metrics-file", "none/x.prom", home=tmp_path, program=TRIAL)
    assert done.returncode == 40
    assert done.stdout == ""


def test_success_and_failure_are_both_told(tmp_path: Path) -> None:
    def backup(source: str) -> int:
        return logkeep(
            "backup", "--source", source, "--metrics-file", "x.prom", home=tmp_path, program=TRIAL
        ).returncode

    assert (backup("good"), backup("bad")) == (0, 20)
    text = (tmp_path / "x.prom").read_text()
    assert 'logkeep_backup_success{source="good"} 1.0' in text
    assert 'logkeep_backup_success{source="bad"} 0.0' in text
    assert 'logkeep_backup_last_success_timestamp_seconds{source="bad"}' not in text


def test_work_that_is_done_stays_done_when_its_metrics_cannot_be_told(tmp_path: Path) -> None:
    done = logkeep("backup", "--source", "spoiled", "--metrics-file", "x.prom", home=tmp_path, program=TRIAL)
    assert (done.returncode, done.stdout) == (2, "saved\n")
    assert "left alone" in done.stderr
    assert (tmp_path / "x.prom").read_text() == "somebody else's\n"


def test_alert_rules_use_metrics_that_exist() -> None:
    rules = yaml.safe_load((ROOT / "docs" / "alerts" / "logkeep.rules.yaml").read_text())
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    assert len({alert["alert"] for alert in alerts}) == len(alerts) >= 5
    for alert in alerts:
        names = re.findall(r"logkeep_\w+", alert["expr"])
        assert names
        assert set(names) <= METRICS.keys()
        assert {"expr", "for", "labels", "annotations"} <= alert.keys()
