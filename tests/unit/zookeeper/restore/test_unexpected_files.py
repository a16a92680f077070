"""Numbers that no server gives out, in a server's directories or beside them: the file is named, and a remedy."""

from pathlib import Path

import pytest

from logkeep.errors import TargetUnsafe
from logkeep.zookeeper.restore.ensemble.documents import HostSurvey, decoded, encoded
from logkeep.zookeeper.restore.ensemble.plan import agree
from logkeep.zookeeper.restore.ensemble.survey import survey_host, survey_of
from logkeep.zookeeper.restore.finish import roll_back
from logkeep.zookeeper.restore.numbers import epoch_above
from logkeep.zookeeper.restore.prepare import prepare
from logkeep.zookeeper.restore.run import carry_out
from logkeep.zookeeper.restore.values import ServerTarget, ZooKeeperRestoreOptions, ZooKeeperRestorePlan
from logkeep.zookeeper.timeline.replay import replay
from tests.support.zookeeper.handmade_server import made_backup, old_server
from tests.unit.zookeeper.restore.test_ensemble_agreement import NOW

_BESIDE = "version-2.before-20261116030000-1f2e3d4c"


def _planned(target: ServerTarget, *, ensemble: bool) -> ZooKeeperRestorePlan:
    view = made_backup()
    return prepare(
        view, view.path(), ZooKeeperRestoreOptions(targets=(target,), ensemble=ensemble, min_epoch=int(ensemble))
    ).planned


def _target(data_dir: Path) -> ServerTarget:
    old_server(data_dir, epoch=1, epochs=True)
    (data_dir / _BESIDE).mkdir()
    return ServerTarget(data_dir=data_dir, log_dir=data_dir)


@pytest.mark.parametrize(
    ("name", "content", "number"),
    [
        ("log.7ffffffffffffff0", "", "zxid 0x7ffffffffffffff0"),
        ("snapshot.ffffffffffffffff", "", "zxid 0xffffffffffffffff"),
        ("currentEpoch", "99999999999999999", "epoch 99999999999999999"),
        ("acceptedEpoch", "2147483647", "epoch 2147483647"),
    ],
)
@pytest.mark.parametrize("where", ["version-2", _BESIDE])
def test_the_file_is_named_with_a_remedy(tmp_path: Path, where: str, name: str, content: str, number: str) -> None:
    target = _target(tmp_path)
    (tmp_path / where / name).write_text(content)
    for attempt in (lambda: _planned(target, ensemble=True), lambda: survey_of(target, "zk1")):
        with pytest.raises(TargetUnsafe, match=number) as caught:
            attempt()
        assert caught.value.subject == str(tmp_path / where / name)
        assert f"move it out of {tmp_path / where}" in caught.value.remedy


def test_an_epoch_that_somebody_typed_is_not_looked_for_in_files() -> None:
    with pytest.raises(TargetUnsafe, match="there is none") as caught:
        epoch_above([3], [], (1 << 31) - 1)
    assert "--min-epoch" in caught.value.remedy


def test_a_file_beside_that_raises_the_numbers_is_told(tmp_path: Path) -> None:
    """It may be right, after a rollback, or rubbish that is not absurd enough: nobody else can tell."""
    target = _target(tmp_path)
    assert "numbers-beside" not in [each.code for each in _planned(target, ensemble=True).findings]
    epoch, snapshot = tmp_path / _BESIDE / "currentEpoch", tmp_path / _BESIDE / "snapshot.700000000"
    epoch.write_text("2000000000")
    snapshot.write_text("")
    planned = _planned(target, ensemble=True)
    (told,) = [each for each in planned.findings if each.code == "numbers-beside"]
    assert (planned.epoch, str(epoch) in told.what, str(snapshot) in told.what) == (2000000001, True, True)
    assert "move them away" in told.remedy


def test_a_plan_for_several_hosts_tells_it_too(tmp_path: Path) -> None:
    target = _target(tmp_path)
    (tmp_path / _BESIDE / "acceptedEpoch").write_text("12")
    survey = decoded(encoded(survey_host([("zk1", target)], "host", NOW)), HostSurvey, "s.json")
    view = made_backup()
    wish, path = ZooKeeperRestoreOptions(targets=(), ensemble=True, min_epoch=1), view.path()
    agreed = agree(view, path, replay(view, path), wish, [survey], source="zk", clock=lambda: NOW)
    (told,) = [each for each in agreed.findings if each.code == "numbers-beside"]
    assert (agreed.plan.epoch, told.where) == (13, "zk1 on host")
    assert str(tmp_path / _BESIDE / "acceptedEpoch") in told.what


def test_a_rollback_is_not_kept_from_its_work_by_rubbish(tmp_path: Path) -> None:
    old_server(tmp_path)
    target, view = ServerTarget(data_dir=tmp_path, log_dir=tmp_path), made_backup()
    carry_out(prepare(view, view.path(), ZooKeeperRestoreOptions(targets=(target,))), replace=True)
    (tmp_path / "version-2" / "log.7ffffffffffffff0").write_text("")
    (told,) = roll_back(target).findings
    assert "log.7ffffffffffffff0" in told.what
