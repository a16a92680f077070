"""Hosts that share a name, and directories that have two: which surveys are of one member, and which of two."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from logkeep.errors import UsageError
from logkeep.zookeeper.restore.ensemble import host_identity
from logkeep.zookeeper.restore.ensemble.documents import HostSurvey, decoded, encoded
from logkeep.zookeeper.restore.ensemble.host_identity import HostIdentity, this_host
from logkeep.zookeeper.restore.ensemble.survey import check_surveys, survey_host
from logkeep.zookeeper.restore.values import ServerTarget
from tests.support.zookeeper.handmade_server import old_server

NOW = datetime(2026, 11, 16, 3, 0, tzinfo=UTC)


@pytest.fixture
def first(tmp_path: Path) -> HostSurvey:
    """Of `/data` on a host that is called like all others."""
    return _survey(tmp_path / "one", "1", HostIdentity("m1", "b1"))


@pytest.fixture
def second(tmp_path: Path) -> HostSurvey:
    return _survey(tmp_path / "two", "2", HostIdentity("m2", "b2"))


def _survey(directory: Path, member: str, identity: HostIdentity) -> HostSurvey:
    old_server(directory)
    target = ServerTarget(data_dir=directory, log_dir=directory)
    found = decoded(encoded(survey_host([(member, target)], "zookeeper", NOW, identity=identity)), HostSurvey, "s.json")
    (one,) = found.members
    return msgspec.structs.replace(
        found, members=(msgspec.structs.replace(one, data_dir="/data", log_dir="/data", fingerprint=f"{member}f"),)
    )


def _taken(*hosts: HostSurvey) -> bool:
    """Whether a plan may be made of them; refused is only what is refused for being one."""
    try:
        check_surveys(hosts, NOW)
    except UsageError as error:
        return not ("is in two surveys" in error.what and "/etc/machine-id" in error.remedy)
    return True


def _on(host: HostSurvey, machine_id: str, boot_id: str) -> HostSurvey:
    return msgspec.structs.replace(host, machine_id=machine_id, boot_id=boot_id)


def test_two_hosts_of_one_name_are_two(first: HostSurvey, second: HostSurvey) -> None:
    assert _taken(first, second)
    assert _taken(_on(first, "m1", ""), _on(second, "m2", ""))


def test_two_containers_of_one_kernel_are_two(first: HostSurvey, second: HostSurvey) -> None:
    """Of one image: the machine's id is the same in both, or there is none."""
    for machine_id in ("m1", ""):
        assert _taken(_on(first, machine_id, "b1"), _on(second, machine_id, "b1"))


def test_one_host_that_was_started_again_is_one(first: HostSurvey) -> None:
    later = msgspec.structs.replace(_on(first, "m1", "b9"), taken="2026-11-16T02:59:00.000Z")
    (one,) = first.members
    changed = msgspec.structs.replace(one, fingerprint="0f", member="renamed", directory=(9, 9))
    assert not _taken(first, msgspec.structs.replace(later, members=(changed,)))


def test_where_the_machine_does_not_tell_names_decide(first: HostSurvey, second: HostSurvey) -> None:
    assert not _taken(_on(first, "", "b1"), _on(second, "", "b2"))
    assert not _taken(_on(first, "m1", "b1"), _on(second, "m1", "b2"))
    assert _taken(_on(first, "", ""), msgspec.structs.replace(_on(second, "", ""), machine="other"))


@pytest.mark.parametrize("changes", [{"data_dir": "/mounted/elsewhere"}, {"member": "other", "fingerprint": "0f"}])
def test_one_directory_is_one_whatever_it_is_called(first: HostSurvey, changes: dict[str, str]) -> None:
    """Two containers that have it mounted, a host that was renamed, a directory with two paths."""
    (one,) = first.members
    again = msgspec.structs.replace(
        first, machine="renamed", machine_id="m2", members=(msgspec.structs.replace(one, **changes),)
    )
    assert not _taken(first, again)
    assert not _taken(msgspec.structs.replace(first, members=(*first.members, *again.members)))


def test_surveys_of_an_earlier_build_are_read(first: HostSurvey, second: HostSurvey) -> None:
    def earlier(host: HostSurvey) -> HostSurvey:
        (one,) = host.members
        old = msgspec.structs.replace(_on(host, "", ""), members=(msgspec.structs.replace(one, directory=None),))
        assert b"_id" not in encoded(old)
        return decoded(encoded(old), HostSurvey, "s.json")

    assert not _taken(earlier(first), earlier(second))
    assert not _taken(first, earlier(second))


def test_what_the_system_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, boot = tmp_path / "machine-id", tmp_path / "boot_id"
    monkeypatch.setattr(host_identity, "_MACHINE_ID", machine)
    monkeypatch.setattr(host_identity, "_BOOT_ID", boot)
    assert this_host() == HostIdentity("", "")
    boot.write_text("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0\n")
    for nothing in ("", "uninitialized\n", "\xe9"):
        machine.write_text(nothing)
        assert this_host().machine_id == ""
    machine.write_text("0123456789abcdef0123456789abcdef\n")
    found = this_host()
    assert found.machine_id != found.boot_id
    assert "0123456789abcdef" not in found.machine_id
    assert found == this_host()


def test_one_member_whose_disk_was_copied_in_between_is_one(first: HostSurvey) -> None:
    """Another inode, at the same path under the same name: who counts it twice overlooks a third."""
    (member,) = first.members
    copied = msgspec.structs.replace(member, directory=(7, 7), fingerprint="cf")
    assert not _taken(first, msgspec.structs.replace(first, members=(copied,)))


def test_disks_that_are_mounted_one_after_the_other_are_two(first: HostSurvey, second: HostSurvey) -> None:
    """Each has the device and the inode of the one before, and a file system of its own."""
    (member,), (other,) = first.members, second.members
    assert member.directory is not None
    device, inode, number = member.directory
    mounted = msgspec.structs.replace(other, directory=(device, inode, number + 1))
    assert _taken(first, _on(msgspec.structs.replace(second, members=(mounted,)), "m1", "b1"))
