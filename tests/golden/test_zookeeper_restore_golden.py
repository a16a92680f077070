"""Surveys and plans that earlier versions wrote are read for ever, and written as the same bytes."""

from pathlib import Path

from logkeep.zookeeper.restore.ensemble.documents import (
    AgreedPlan,
    HostSurvey,
    MemberSurvey,
    PlannedMember,
    encoded,
    read_document,
)
from logkeep.zookeeper.restore.values import Form, Sessions

FILES = Path(__file__).parent / "zookeeper_restore"
SURVEY = HostSurvey(
    machine="zk1.example",
    taken="2026-11-16T02:15:00.123Z",
    members=(
        MemberSurvey(
            member="1",
            data_dir="/var/lib/zookeeper",
            log_dir="/var/lib/zookeeper-log",
            host="zk1.example:2181",
            snapshots=3,
            logs=4,
            highest_zxid=0x700000028,
            epochs=(7, 7),
            fingerprint="ab" * 32,
            running=("a server answers at zk1.example:2181",),
            unchecked=("the open files of 2 processes of other users cannot be seen",),
        ),
    ),
)
PLAN = AgreedPlan(
    made="2026-11-16T02:20:00.123Z",
    source="zookeeper",
    backup="20261116020000",
    zxid=0x600000005,
    named_zxid=8 << 32,
    epoch=8,
    sessions=Sessions.DROP,
    form=Form.EXACT,
    believe=False,
    accept_mismatch="",
    nodes=1234,
    digest="fedcba9876543210",
    members=(
        PlannedMember(
            member="1",
            machine="zk1.example",
            data_dir="/var/lib/zookeeper",
            log_dir="/var/lib/zookeeper-log",
            fingerprint="ab" * 32,
        ),
        PlannedMember(member="2", machine="zk2.example", data_dir="/zk", log_dir="/zk", fingerprint="cd" * 32),
    ),
)


def test_a_survey() -> None:
    path = FILES / "survey.v1.json"
    assert read_document(path, HostSurvey) == SURVEY
    assert path.read_bytes() == encoded(SURVEY)


def test_a_plan() -> None:
    path = FILES / "plan.v1.json"
    assert read_document(path, AgreedPlan) == PLAN
    assert path.read_bytes() == encoded(PLAN)
