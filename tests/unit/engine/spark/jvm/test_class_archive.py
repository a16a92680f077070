"""A class archive is code: it is neither used nor written where another user can write."""

from pathlib import Path

import pytest

from logkeep.engine.spark.jvm.class_archive import class_archive
from logkeep.engine.spark.jvm.java import Java
from logkeep.engine.spark.session import EngineSession
from logkeep.engine.spark.settings import SparkSettings
from logkeep.errors import ConfigError
from tests.support.other_user import give_to_other


def test_an_archive_in_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "cache" / "classes"
    archive = class_archive(directory, Java(Path("/usr/bin/java"), 17, "17"), Path("/spark"), "4", "x")
    archive.prepare()
    assert directory.stat().st_mode & 0o777 == 0o700
    archive.file.write_bytes(b"planted")
    give_to_other(archive.file)
    with pytest.raises(ConfigError, match="others can change what it holds"):
        archive.prepare()
    archive.file.unlink()
    archive.prepare()
    give_to_other(directory.parent)
    with pytest.raises(ConfigError, match="others can change what it holds"):
        archive.prepare()


def test_spark_starts_without_an_archive_where_the_cache_is_not_private(tmp_path: Path) -> None:
    """As with a cache in a container's shared directory: slower, and its log is elsewhere."""
    cache = tmp_path / "shared" / "cache"
    cache.mkdir(parents=True)
    (tmp_path / "shared").chmod(0o777)
    session = EngineSession(SparkSettings(cache_dir=cache))
    archive = class_archive(cache / "classes", Java(Path("/usr/bin/java"), 17, "17"), Path("/spark"), "4", "x")
    try:
        assert session.make_directories(archive) is None
        assert cache not in session.log.parents
    finally:
        session.close()
    (tmp_path / "shared").chmod(0o755)
    session = EngineSession(SparkSettings(cache_dir=cache))
    try:
        assert session.make_directories(archive) is archive
        assert cache in session.log.parents
    finally:
        session.close()
