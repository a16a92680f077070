"""Which directories, logs and hosts belong to one member."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.cli.verbs.zookeeper.members import GivenMember, member_places, name_of, paired
from logkeep.errors import UsageError


def test_by_position_and_by_name() -> None:
    assert paired(["/a", "/b"], [], ["h:1", "h:2"]) == [
        GivenMember("", Path("/a"), None, "h:1"),
        GivenMember("", Path("/b"), None, "h:2"),
    ]
    assert paired(["x=/a", "y=/b"], ["y=/l"], ["y=h:2", "x=h:1"]) == [
        GivenMember("x", Path("/a"), None, "h:1"),
        GivenMember("y", Path("/b"), Path("/l"), "h:2"),
    ]
    assert paired(["/odd=name"], [], [])[0].data_dir == Path("/odd=name")


@pytest.mark.parametrize(
    ("data_dirs", "log_dirs", "hosts"),
    [
        (["/a", "/b"], [], ["h:1"]),
        (["x=/a"], ["y=/l"], []),
        (["x=/a"], [], ["x=h:1", "x=h:2"]),
        (["x=/a", "y=/b"], [], ["x=h:1", "h:2"]),
    ],
)
def test_what_does_not_belong_together_is_refused(data_dirs: list[str], log_dirs: list[str], hosts: list[str]) -> None:
    with pytest.raises(UsageError):
        paired(data_dirs, log_dirs, hosts)


def test_a_member_is_called_as_its_myid_says(tmp_path: Path) -> None:
    assert name_of(tmp_path) == "standalone"
    (tmp_path / "myid").write_text("2\n")
    assert name_of(tmp_path) == name_of(tmp_path / "version-2") == "2"
    with pytest.raises(UsageError, match="would have the name 2"):
        member_places(paired([str(tmp_path), str(tmp_path / "version-2")], [], []))


@given(st.lists(st.sampled_from("abcdef"), unique=True, min_size=1), st.randoms())
def test_the_order_of_names_does_not_matter(names: list[str], chance: Random) -> None:
    hosts = [f"{name}=host-{name}:1" for name in names]
    chance.shuffle(hosts)
    found = paired([f"{name}=/{name}" for name in names], [], hosts)
    assert [each.host for each in found] == [f"host-{name}:1" for name in names]
