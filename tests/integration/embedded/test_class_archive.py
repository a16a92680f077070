"""The class archive of a server: recorded by one run, used by the next, harmless when it is damaged or not ours."""

import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from logkeep.embedded.class_archive import archive_options, recorded
from logkeep.embedded.zookeeper import EmbeddedZooKeeper, ZooKeeperRelease

pytestmark = pytest.mark.xdist_group("zookeeper-servers")
_DAMAGED_BYTES = 1_000_000


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the archive of a run. The jars are those of PySpark: the cache need not have them."""
    root = tmp_path_factory.mktemp("recorded")
    cache = root / "cache"
    with recorded(cache, ZooKeeperRelease().class_path(cache)) as options, _server(root, cache, options) as server:
        assert _archive(cache) is None, "it is written when the server ends"
        assert server.serves()
    return cache


def _server(root: Path, cache: Path, options: Sequence[str] = ()) -> EmbeddedZooKeeper:
    return EmbeddedZooKeeper(root / "server", cache, java_options=options)


def _archive(cache: Path) -> Path | None:
    return next((cache / "classes").glob("*.jsa"), None)


def _is_mapped(server: EmbeddedZooKeeper, archive: Path) -> bool:
    return str(archive) in Path(f"/proc/{server.pid}/maps").read_text()


def test_the_next_server_uses_it_and_one_that_is_damaged_does_no_harm(cache: Path, tmp_path: Path) -> None:
    archive = _archive(cache)
    assert archive is not None
    assert [each.name for each in archive.parent.iterdir()] == [archive.name]
    assert [stat.S_IMODE(each.stat().st_mode) for each in (archive, archive.parent)] == [0o400, 0o700]
    with _server(tmp_path, cache) as server:
        assert _is_mapped(server, archive)
        said = server.java_tool("org.apache.zookeeper.version.VersionInfoMain", [])
    archive.chmod(0o600)
    with archive.open("r+b") as file:
        file.seek(archive.stat().st_size // 2)
        file.write(bytes(_DAMAGED_BYTES))
    with _server(tmp_path, cache) as server:
        assert server.serves()
        assert server.java_tool("org.apache.zookeeper.version.VersionInfoMain", []) == said


def test_it_is_not_used_where_other_users_can_change_it(cache: Path) -> None:
    path = ZooKeeperRelease().class_path(cache)
    assert archive_options(cache, path)
    (cache / "classes").chmod(0o777)
    assert archive_options(cache, path) == []
    (cache / "classes").chmod(0o700)
    assert archive_options(cache, path[1:]) == [], "of other jars"
