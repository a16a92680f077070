"""Backup sets: who is captured in which order, which id, and what becomes of a set whose member fails."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from logkeep.application.backup_set.plan import (
    KnownMember,
    capture_order,
    check_members,
    check_names,
    chosen_id,
    end_code,
)
from logkeep.application.backup_set.run import MemberEnd, preview_all, take_all
from logkeep.errors import ClusterError, IllegalTransition, Interrupted, Locked, LogkeepError, UnknownSource, UsageError
from logkeep.model.ids import BackupId

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
KAFKA, SHOP, ZK = (
    KnownMember("kafka-prod", "kafka", 7),
    KnownMember("shop", "application", 9),
    KnownMember("zk", "zookeeper"),
)


def test_applications_are_captured_first_and_the_others_as_named() -> None:
    assert capture_order([ZK, SHOP, KAFKA]) == [SHOP, ZK, KAFKA]


@pytest.mark.parametrize("names", [[], ["shop"], ["shop", "zk", "shop"]])
def test_a_set_has_two_different_members_at_least(names: list[str]) -> None:
    with pytest.raises(UsageError):
        check_names(names)


@pytest.mark.parametrize(
    ("member", "error"),
    [
        (KnownMember("new", None), UnknownSource),
        (KnownMember("old", "zeebe"), UsageError),
        (KnownMember("busy", "kafka", busy=True), Locked),
    ],
)
def test_what_cannot_be_a_member_is_refused_with_its_name(member: KnownMember, error: type[LogkeepError]) -> None:
    check_members([KAFKA, SHOP, ZK])
    with pytest.raises(error) as refused:
        check_members([SHOP, member])
    assert refused.value.subject == member.source


def test_the_id_is_larger_than_that_of_every_member() -> None:
    assert chosen_id(None, [KAFKA, SHOP, ZK], NOW) == 20261118120000
    assert chosen_id(None, [KAFKA, KnownMember("late", "kafka", 20261118120007)], NOW) == 20261118120008
    assert chosen_id(BackupId(10), [KAFKA, SHOP, ZK], NOW) == 10
    with pytest.raises(IllegalTransition, match="9") as refused:
        chosen_id(BackupId(9), [KAFKA, SHOP, ZK], NOW)
    assert refused.value.subject == "shop"


@pytest.mark.parametrize(
    ("state", "codes", "code"),
    [
        ("completed", [0, 0, 0], 0),
        ("completed", [0, 2, 21], 21),
        ("completed", [0, 2, 0], 2),
        ("completed", [0, 50], 50),
        ("failed", [0, 0], 20),
        ("doesNotExist", [51], 20),
    ],
)
def test_a_set_ends_with_the_worst_of_its_members(state: str, codes: list[int], code: int) -> None:
    assert end_code(state, codes) == code


@dataclass
class Scripted:
    """A member that raises where it is told to."""

    source: str
    done: list[str]
    raises: dict[str, LogkeepError] = field(default_factory=dict)
    code: int = 0

    def preview(self) -> int:
        return self._step("preview")

    def capture(self) -> int:
        return self._step("capture")

    def finish(self) -> int:
        return self._step("finish")

    def _step(self, name: str) -> int:
        self.done.append(f"{name} {self.source}")
        if name in self.raises:
            raise self.raises[name]
        return self.code


def scripted(names: Sequence[str], **raises: LogkeepError) -> tuple[list[Scripted], list[str]]:
    done: list[str] = []
    return [Scripted(name, done, raises if name == "b" else {}) for name in names], done


def test_all_are_captured_before_the_first_is_followed_to_its_end() -> None:
    members, done = scripted("ab")
    members[1].code = 21
    assert take_all(members) == [MemberEnd("a", 0), MemberEnd("b", 21)]
    assert done == ["capture a", "capture b", "finish a", "finish b"]


def test_after_a_failure_no_other_is_begun_and_those_that_were_are_followed() -> None:
    members, done = scripted("abc", capture=ClusterError("it does not answer", subject="broker:9092"))
    assert take_all(members) == [MemberEnd("a", 0), MemberEnd("b", 20, "broker:9092: it does not answer")]
    assert done == ["capture a", "capture b", "finish a"]


def test_a_copy_that_fails_later_is_named() -> None:
    members, done = scripted("abc", finish=LogkeepError("partition 2 died"))
    assert [end.reason for end in take_all(members)] == ["", "partition 2 died", ""]
    assert done[-1] == "finish c"


def test_a_signal_is_no_failure_of_a_member() -> None:
    members, done = scripted("abc", capture=Interrupted("stopped"))
    with pytest.raises(Interrupted):
        take_all(members)
    assert done == ["capture a", "capture b"]


def test_what_a_preview_refuses_names_the_member() -> None:
    members, done = scripted("abc", preview=ClusterError("it does not answer"))
    with pytest.raises(ClusterError, match="member b: it does not answer"):
        preview_all(members)
    assert done == ["preview a", "preview b"]
