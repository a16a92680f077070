"""Servers are started only from the jars that are pinned: checked after a download, and once by each process."""

import hashlib
import importlib.metadata
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from logkeep.embedded.lock_jars import product_sets
from logkeep.embedded.zookeeper import EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.engine.spark.jvm import jar_lock, jars
from logkeep.engine.spark.jvm.jar_lock import check_files, differences, parse_lock, pins_of, render_lock, set_name
from logkeep.engine.spark.jvm.jars import jars_place, resolve_jars, spark_home, spark_jars
from logkeep.errors import ConfigError, JarsUnavailable, JarsUntrusted
from tests.support.cli.processes import ROOT
from tests.support.other_user import give_to_other
from tests.support.servers.exact_jars import ExactJars
from tests.support.servers.older_kafka import RELEASE
from tests.support.servers.spark_connectors import CONNECTORS
from tests.support.servers.tiered_kafka import TEST_JARS

THING = ("org.example:thing:1",)
GOOD = {"thing-1.jar": b"thing", "part-2.jar": b"part"}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache with a set of jars that a lock of its own pins. The functions remember what they checked: not here."""
    pins = {name: hashlib.sha256(content).hexdigest() for name, content in GOOD.items()}
    monkeypatch.setattr(jar_lock, "_lock", lambda: parse_lock(render_lock({set_name(THING): pins})))
    place = jars_place(THING, tmp_path)
    place.mkdir(parents=True)
    for name, content in GOOD.items():
        (place / name).write_bytes(content)
    jars._check_place.cache_clear()
    yield tmp_path
    jars._check_place.cache_clear()


def test_pinned_jars_are_used(cache: Path) -> None:
    assert [jar.name for jar in resolve_jars(THING, cache)] == sorted(GOOD)


@pytest.mark.parametrize(
    ("name", "content", "what"),
    (
        ("thing-1.jar", b"evil!", "thing-1.jar has another content"),
        ("thing-1.jar", None, "thing-1.jar is missing"),
        ("aaa-first-on-the-class-path.jar", b"evil", "aaa-first-on-the-class-path.jar does not belong there"),
    ),
)
def test_a_tampered_missing_or_extra_jar_starts_nothing(
    cache: Path, name: str, content: bytes | None, what: str
) -> None:
    jar = jars_place(THING, cache) / name
    if content is None:
        jar.unlink()
    else:
        jar.write_bytes(content)
    for _ in range(2):  # a refusal is not remembered as a check
        with pytest.raises(JarsUntrusted, match=what) as caught:
            resolve_jars(THING, cache)
    assert caught.value.exit_code == 40
    assert caught.value.remedy == f"remove {jar.parent} and run again"


def test_a_set_without_a_row_is_not_even_resolved(cache: Path) -> None:
    with pytest.raises(JarsUntrusted, match="no hashes of these jars are pinned"):
        resolve_jars(("org.example:other:1",), cache, {"PATH": "/nowhere"})


def test_a_cache_of_another_user_is_not_used(cache: Path) -> None:
    give_to_other(cache)
    with pytest.raises(ConfigError, match="others can change what it holds") as caught:
        resolve_jars(THING, cache)
    assert "LOGKEEP_CACHE_DIR" in caught.value.remedy


def test_no_server_is_started_from_a_tampered_jar(tmp_path: Path) -> None:
    release = ZooKeeperRelease("3.4.14")
    place = jars_place(release.coordinates, tmp_path / "cache")
    place.mkdir(parents=True)
    for jar in pins_of(set_name(release.coordinates)):
        (place / jar).write_bytes(b"evil")
    server = EmbeddedZooKeeper(tmp_path / "server", tmp_path / "cache", release=release)
    with pytest.raises(JarsUntrusted, match=r"has another content \(and [0-9]+ more\)"):
        server.start()
    assert (server.pid, server.log.exists()) == (None, False)


def test_what_is_different() -> None:
    assert differences({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "x", "d": "4"}) == [
        "b has another content", "c is missing", "d does not belong there",
    ]  # fmt: skip
    assert differences({"a": "1"}, {"a": "1"}) == []


def test_every_set_that_is_started_is_pinned() -> None:
    for coordinates in (*product_sets(), RELEASE.coordinates):
        pins = pins_of(set_name(coordinates))
        assert pins, coordinates
        for coordinate in coordinates:
            group, artifact, version = coordinate.split(":")
            assert f"{group}_{artifact}-{version}.jar" in pins


@pytest.mark.parametrize("jars", [CONNECTORS, TEST_JARS], ids=lambda each: each.name)
def test_jars_that_tests_fetch_alone_are_pinned(jars: ExactJars) -> None:
    assert len(pins_of(jars.pinned)) == len(jars.coordinates)


def test_the_makefile_names_the_sets_of_tests_and_benchmarks() -> None:
    found = re.search(r"OTHER_JARS := ((?:.*\\\n)*.*)", (ROOT / "Makefile").read_text())
    assert found is not None
    assert {set_name(each.split(",")) for each in found[1].replace("\\\n", " ").split()} == {
        set_name(RELEASE.coordinates)
    }


def test_the_jars_of_pyspark_that_servers_need_are_pinned(tmp_path: Path) -> None:
    name = f"pyspark:{importlib.metadata.version('pyspark')}"
    log4j = spark_jars("log4j-core-2*.jar")
    assert [jar.parent for jar in log4j] == [spark_home() / "jars"]
    (evil := tmp_path / log4j[0].name).write_bytes(b"evil")
    with pytest.raises(JarsUntrusted, match="has another content"):
        check_files([evil], name, remedy="")
    (tmp_path / "netty-evil.jar").write_bytes(b"")
    with pytest.raises(JarsUntrusted, match="does not belong there"):
        check_files([tmp_path / "netty-evil.jar"], name, remedy="")


def test_every_row_is_a_sha256_in_order() -> None:
    text = (ROOT / "src" / "logkeep" / "engine" / "spark" / "jvm" / "jars.lock").read_text()
    sets = parse_lock(text)
    assert render_lock(sets) == text
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for pins in sets.values() for digest in pins.values())


def test_jars_that_cannot_be_downloaded_name_the_network(tmp_path: Path) -> None:
    """Not the code of what nobody foresaw: a machine without a network is usual."""
    java = tmp_path / "home/bin/java"
    java.parent.mkdir(parents=True)
    asked, other = """echo 'openjdk version "17.0.1"' >&2""", "echo UnknownHostException >&2; exit 1"
    java.write_text(f'#!/bin/sh\ncase "$*" in *-version*) {asked};; *) {other};; esac\n')
    java.chmod(0o755)
    environ = {**os.environ, "JAVA_HOME": str(tmp_path / "home")}
    with pytest.raises(JarsUnavailable, match="UnknownHost") as caught, jars.fetched(THING, tmp_path, environ):
        raise AssertionError("nothing was downloaded")
    assert (caught.value.exit_code, "check the network" in caught.value.remedy) == (51, True)
