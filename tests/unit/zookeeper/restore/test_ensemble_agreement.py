"""One plan for members on several hosts: what it says, and everything that it is refused for."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import Damaged, LogkeepError, TargetUnsafe, UsageError
from logkeep.formats.zookeeper.names import log_name
from logkeep.zookeeper.model.archived import Member
from logkeep.zookeeper.restore.ensemble.agreement import epoch_for_all
from logkeep.zookeeper.restore.ensemble.documents import AgreedPlan, HostSurvey, MemberSurvey, decoded, encoded
from logkeep.zookeeper.restore.ensemble.plan import Agreement, agree
from logkeep.zookeeper.restore.ensemble.survey import survey_host
from logkeep.zookeeper.restore.finish import roll_back
from logkeep.zookeeper.restore.prepare import PreparedRestore, prepare
from logkeep.zookeeper.restore.run import carry_out
from logkeep.zookeeper.restore.values import Form, ServerTarget, Sessions, ZooKeeperRestoreOptions
from logkeep.zookeeper.server.four_letter import ServerState
from logkeep.zookeeper.timeline.replay import replay
from tests.support.zookeeper.handmade_server import MadeView, create, files, log_bytes, made_backup, old_server

NOW = datetime(2026, 11, 16, 3, 0, tzinfo=UTC)
ENSEMBLE = ZooKeeperRestoreOptions(targets=(), ensemble=True)


def _survey(directory: Path, *, now: datetime = NOW) -> HostSurvey:
    """As it arrives on another host."""
    target = ServerTarget(data_dir=directory, log_dir=directory)
    return decoded(encoded(survey_host([(directory.name, target)], "host", now)), HostSurvey, "s.json")


def _agree(view: MadeView, hosts: Sequence[HostSurvey], wish: ZooKeeperRestoreOptions = ENSEMBLE) -> Agreement:
    path = view.path()
    return agree(view, path, replay(view, path), wish, hosts, source="zk", clock=lambda: NOW)


def _carried(view: MadeView, directory: Path, plan: AgreedPlan, *, now: datetime = NOW) -> PreparedRestore:
    """As `restore --plan` has it."""
    agreed = decoded(encoded(plan), AgreedPlan, "plan.json")
    targets = (ServerTarget(data_dir=directory, log_dir=directory),)
    wish = replace(ENSEMBLE, targets=targets, sessions=agreed.sessions, form=agreed.form)
    return prepare(view, view.path(), wish, agreed=agreed, clock=lambda: now)


@pytest.fixture
def hosts(tmp_path: Path) -> list[Path]:
    found = [tmp_path / name for name in ("zk1", "zk2", "zk3")]
    for directory, epoch in zip(found, (3, 7, 4), strict=True):
        old_server(directory, epoch=epoch, epochs=True)
    return found


def test_every_host_gets_the_same_files_and_an_epoch_above_all(hosts: list[Path]) -> None:
    view = made_backup(epoch=2)
    agreed = _agree(view, [_survey(each) for each in hosts])
    assert (agreed.plan.epoch, agreed.plan.named_zxid, agreed.obstacles) == (8, 8 << 32, ())
    for each in hosts:
        receipt = carry_out(_carried(view, each, agreed.plan), replace=True)
        assert (receipt.epoch, receipt.named_zxid) == (8, 8 << 32)
    assert len({str(sorted(files(each / "version-2").items())) for each in hosts}) == 1
    assert files(hosts[0] / "version-2")["currentEpoch"] == b"8"


def test_a_plan_is_carried_out_once_and_can_be_taken_back(hosts: list[Path]) -> None:
    view, target = made_backup(epoch=2), ServerTarget(data_dir=hosts[0], log_dir=hosts[0])
    plan = _agree(view, [_survey(each) for each in hosts]).plan
    carry_out(_carried(view, hosts[0], plan), replace=True)
    with pytest.raises(TargetUnsafe, match="applied here before"):
        _carried(view, hosts[0], plan)
    roll_back(target)
    assert carry_out(_carried(view, hosts[0], plan), replace=True).epoch == 8


def test_a_plan_whose_epoch_was_used_and_taken_back_is_not_carried_out_again(hosts: list[Path]) -> None:
    view, target = made_backup(epoch=2), ServerTarget(data_dir=hosts[0], log_dir=hosts[0])
    plan = _agree(view, [_survey(each) for each in hosts]).plan
    carry_out(_carried(view, hosts[0], plan), replace=True)
    (hosts[0] / "version-2" / "currentEpoch").write_text("9")
    roll_back(target)
    with pytest.raises(TargetUnsafe, match="epoch 9 is in use here"):
        _carried(view, hosts[0], plan)


def test_sessions_that_are_dropped_are_dropped_everywhere(hosts: list[Path]) -> None:
    view = made_backup(epoch=2)
    plan = _agree(view, [_survey(each) for each in hosts], replace(ENSEMBLE, sessions=Sessions.DROP)).plan
    prepared = _carried(view, hosts[1], plan)
    assert (prepared.planned.nodes, prepared.dropped.ephemerals) == (plan.nodes, 1)


def test_a_server_that_was_started_since(hosts: list[Path]) -> None:
    view = made_backup(epoch=2)
    plan = _agree(view, [_survey(each) for each in hosts]).plan
    first = (9 << 32) + 1
    (hosts[0] / "version-2" / log_name(first)).write_bytes(log_bytes([create(first, b"/since")]))
    with pytest.raises(TargetUnsafe, match="not the surveyed ones") as caught:
        _carried(view, hosts[0], plan)
    assert "survey every host again" in caught.value.remedy


def test_an_epoch_that_is_in_use_by_now(hosts: list[Path]) -> None:
    """The fingerprint cannot tell everything: a server may answer that has written nothing yet."""
    view = made_backup(epoch=2)
    plan = _agree(view, [_survey(each) for each in hosts]).plan
    wish = replace(ENSEMBLE, targets=(ServerTarget(data_dir=hosts[0], log_dir=hosts[0], host="zk:2181"),))
    with pytest.raises(TargetUnsafe, match="epoch 9 is in use"):
        prepare(view, view.path(), wish, agreed=plan, clock=lambda: NOW, ask=lambda _: ServerState(9 << 32, "leader"))


def test_another_directory_another_backup_another_wish(hosts: list[Path], tmp_path: Path) -> None:
    view = made_backup(epoch=2)
    plan = _agree(view, [_survey(each) for each in hosts]).plan
    old_server(tmp_path / "zk9", epoch=3, epochs=True)
    with pytest.raises(UsageError, match="not made for this directory"):
        _carried(view, tmp_path / "zk9", plan)
    with pytest.raises(UsageError, match="the plan says form original"):
        prepare(
            view,
            view.path(),
            replace(ENSEMBLE, targets=(ServerTarget(data_dir=hosts[0], log_dir=hosts[0]),)),
            agreed=msgspec.structs.replace(plan, form=Form.ORIGINAL),
            clock=lambda: NOW,
        )
    other = made_backup(epoch=2)
    other.logs.clear()
    other.add_log([create((2 << 32) + n, b"/other%d" % n, b"") for n in (4, 5)])
    with pytest.raises(UsageError, match="not the one that the plan was made from"):
        _carried(other, hosts[0], plan)


def test_what_is_too_old(hosts: list[Path]) -> None:
    view = made_backup(epoch=2)
    old, young = NOW - timedelta(hours=25), NOW - timedelta(hours=23)
    surveys = [_survey(each, now=young) for each in hosts]
    plan = _agree(view, surveys).plan
    with pytest.raises(TargetUnsafe, match="the survey of host is of 2026-11-15T02:00:00"):
        _agree(view, [*surveys[:2], _survey(hosts[2], now=old)])
    with pytest.raises(TargetUnsafe, match="in the future"):
        _agree(view, [*surveys[:2], _survey(hosts[2], now=NOW + timedelta(hours=1))])
    with pytest.raises(TargetUnsafe, match="the plan is of"):
        _carried(view, hosts[0], plan, now=NOW + timedelta(hours=25))
    with pytest.raises(UsageError, match="has no valid time"):
        _agree(view, [msgspec.structs.replace(surveys[0], taken="yesterday")])


def test_a_survey_that_is_given_twice(hosts: list[Path]) -> None:
    first = _survey(hosts[0])
    with pytest.raises(UsageError, match="is in two surveys"):
        _agree(made_backup(epoch=2), [first, first])
    with pytest.raises(UsageError, match="is in two surveys"):
        _agree(made_backup(epoch=2), [first, msgspec.structs.replace(first, machine="renamed")])


def test_two_hosts_whose_files_are_alike_are_two(hosts: list[Path]) -> None:
    """Names, sizes and times are the same where directories were copied with their times."""
    first = _survey(hosts[0])
    (one,) = first.members
    copied = msgspec.structs.replace(one, member="zk2")
    elsewhere = msgspec.structs.replace(one, data_dir="/other", log_dir="/other")
    second = msgspec.structs.replace(first, machine="other", boot_id="2", members=(copied,))
    third = msgspec.structs.replace(first, machine="third", boot_id="3", members=(elsewhere,))
    assert _agree(made_backup(epoch=2), [first, second, third]).plan.epoch == 4


def test_members_that_nobody_surveyed(hosts: list[Path]) -> None:
    """The backup is of one member of three; two were surveyed, and the third may have any epoch."""
    view = made_backup(epoch=2)
    view.members = (Member(name="zk1", role="follower", voters=3),)
    surveys = [_survey(each) for each in hosts]
    (refused,) = _agree(view, surveys[:2]).obstacles
    assert isinstance(refused, TargetUnsafe)
    assert "only 2 of the ensemble's members" in refused.what
    assert "--min-epoch" in refused.remedy
    assert "here it is 7" in refused.remedy
    assert _agree(view, surveys).obstacles == ()
    told = _agree(view, surveys[:2], replace(ENSEMBLE, min_epoch=12))
    assert (told.obstacles, told.plan.epoch) == ((), 13)


def test_a_server_that_still_runs_is_no_base_for_a_plan(hosts: list[Path]) -> None:
    target = ServerTarget(data_dir=hosts[0], log_dir=hosts[0], host="zk:2181")
    live = survey_host([("zk1", target)], "host", NOW, ask=lambda _: ServerState(0x900000003, "leader"))
    agreed = _agree(made_backup(epoch=2), [live, *(_survey(each) for each in hosts[1:])])
    assert agreed.plan.epoch == 10
    assert [str(each) for each in agreed.obstacles] == [
        "zk1 on host: it was running when it was surveyed: a server answers at zk:2181"
    ]


def test_a_directory_whose_logs_are_elsewhere_is_not_surveyed(tmp_path: Path) -> None:
    old_server(tmp_path / "data", tmp_path / "logs", epoch=3, epochs=True)
    with pytest.raises(LogkeepError, match="the logs in another directory"):
        survey_host([("zk1", ServerTarget(data_dir=tmp_path / "data"))], "host", NOW)


def test_documents_that_are_something_else(hosts: list[Path]) -> None:
    survey = encoded(_survey(hosts[0]))
    for content in (b"", b"{}", b"\xff", survey.replace(b"restore-survey-1", b"restore-survey-2"), survey[:-5]):
        with pytest.raises(Damaged, match="not a survey of a host"):
            decoded(content, HostSurvey, "x.json")
    with pytest.raises(Damaged, match="not a plan for all members"):
        decoded(survey, AgreedPlan, "x.json")


@given(
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 1 << 52)), min_size=1, max_size=5), st.integers(0, 99)
)
def test_the_epoch_lies_above_all(seen: list[tuple[int, int]], least: int) -> None:
    surveys = [_made_survey(epoch, zxid) for epoch, zxid in seen]
    epoch = epoch_for_all(made_backup(epoch=2), replace(ENSEMBLE, min_epoch=least), surveys)
    assert epoch == 1 + max([2, least, *(e for e, _ in seen), *(zxid >> 32 for _, zxid in seen)])


def _made_survey(epoch: int, zxid: int) -> MemberSurvey:
    return MemberSurvey(
        member="zk", data_dir="/d", log_dir="/d", host="", snapshots=1, logs=1, highest_zxid=zxid, epochs=(epoch, 0),
        fingerprint="0", running=(), unchecked=(),
    )  # fmt: skip
