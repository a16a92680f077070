"""What a tree holds that its new servers would throw away: named, or refused."""

import pytest

from logkeep.errors import TargetUnsafe, UsageError
from logkeep.formats.zookeeper.jute import packed_buffer
from logkeep.formats.zookeeper.transactions import HEADER, decode
from logkeep.zookeeper.restore.limits import content_of, parse_version, tree_findings, tree_obstacles
from logkeep.zookeeper.restore.staged_files import drop_sessions
from logkeep.zookeeper.restore.values import ZooKeeperRestoreOptions
from tests.support.zookeeper.handmade_server import create, create_session, create_special, tree_after

NOW_MS = 1_700_000_000_000
_PLAIN = [create(1, b"/a", b"12345")]
_CONTAINER = [*_PLAIN, create_special(2, b"/box")]
_TTL = [*_PLAIN, create_special(2, b"/short", 1000)]


def _refused(bodies: list[bytes], **wish: object) -> list[str]:
    wanted = ZooKeeperRestoreOptions(targets=(), **wish)  # type: ignore[arg-type] # each test names one field
    return [error.what for error in tree_obstacles(content_of(tree_after(bodies), NOW_MS), wanted)]


def _told(bodies: list[bytes], **wish: object) -> list[str]:
    wanted = ZooKeeperRestoreOptions(targets=(), **wish)  # type: ignore[arg-type] # each test names one field
    return [finding.code for finding in tree_findings(content_of(tree_after(bodies), NOW_MS), wanted)]


def test_usual_nodes_go_everywhere() -> None:
    assert _refused(_PLAIN, version="3.4.14") == []
    assert _told(_PLAIN, version="3.4.14") == []


@pytest.mark.parametrize(("version", "good"), [("3.4.14", False), ("3.5.0", False), ("3.5.1", True), ("3.9.5", True)])
def test_containers(version: str, good: bool) -> None:
    assert (_refused(_CONTAINER, version=version) == []) is good


def test_containers_on_an_unknown_version_are_told() -> None:
    assert _refused(_CONTAINER) == []
    assert _told(_CONTAINER) == ["container-nodes"]


@pytest.mark.parametrize(
    ("version", "extended", "good"),
    [
        ("3.4.14", None, False),
        ("3.5.2", True, False),
        ("3.5.3", True, True),
        ("3.9.5", False, False),
        ("3.9.5", None, True),
    ],
)
def test_times_to_live(version: str, extended: bool | None, good: bool) -> None:
    assert (_refused(_TTL, version=version, extended_types=extended) == []) is good


def test_times_to_live_are_told_unless_the_servers_know_them() -> None:
    assert _told(_TTL, version="3.9.5") == ["ttl-nodes"]
    assert _told(_TTL, version="3.9.5", extended_types=True) == []


def test_nodes_whose_time_is_up() -> None:
    bodies = [*_TTL, create_special(3, b"/empty"), create_special(4, b"/full"), create(5, b"/full/child")]
    tree = tree_after(bodies)
    assert content_of(tree, NOW_MS + 1000).dying == 0
    assert content_of(tree, NOW_MS + 1001).dying == 1
    tree.apply(decode(HEADER.pack(1, 0, 6, NOW_MS, 2) + packed_buffer(b"/full/child")))
    assert content_of(tree, NOW_MS).dying == 1
    wish = ZooKeeperRestoreOptions(targets=(), version="3.9.5", extended_types=True)
    assert "short-lived-nodes" in [finding.code for finding in tree_findings(content_of(tree, NOW_MS), wish)]


def test_a_node_that_servers_could_not_read() -> None:
    large = [create(1, b"/large", bytes(1 << 21))]
    assert "2097152 bytes" in _refused(large)[0]
    assert _refused(large, jute_maxbuffer=1 << 21) == []


def test_what_is_no_version() -> None:
    assert parse_version("") is None
    assert parse_version("3.9.5-abc") == (3, 9, 5)
    with pytest.raises(UsageError):
        parse_version("latest")


def test_sessions_go_with_their_nodes_and_the_digest_follows() -> None:
    bodies = [create_session(1), create(2, b"/stays"), create(3, b"/goes", ephemeral=True)]
    tree = tree_after(bodies)
    dropped = drop_sessions(tree)
    assert (dropped.sessions, dropped.ephemerals) == (1, 1)
    assert b"/goes" not in tree.nodes
    assert not tree.sessions
    assert tree.digest == sum(node.digest for node in tree.nodes.values()) & (2**64 - 1)


def test_refusals_have_an_exit_code() -> None:
    (error,) = tree_obstacles(
        content_of(tree_after(_CONTAINER), NOW_MS), ZooKeeperRestoreOptions(targets=(), version="3.4.14")
    )
    assert isinstance(error, TargetUnsafe)
    assert error.exit_code == 31
