"""Precedence, origins, and mistakes that are named with their place."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.config.load import Loaded, examine, load
from logkeep.config.option import SECRET, Option, SecretOption
from logkeep.config.option_types import Text
from logkeep.config.options import (
    GC_AGE,
    KEEP_TAG,
    LIMIT_UPLOAD,
    OPTIONS,
    REPO,
    RESUME,
    RESUME_RESTORE,
    SOURCE,
    SPARK_CONF,
    VERBOSE,
)
from logkeep.config.places import NOWHERE, Places, standard_places
from logkeep.config.secrets import CommandReference, EnvironmentReference, FileReference
from logkeep.config.settings import SettingPlace
from logkeep.errors import ConfigError, UsageError
from logkeep.file_owners import OriginFile

SERVERS: Option[str | None] = Option(
    "bootstrap-servers", Text(), None, "Brokers.", key="kafka.bootstrap_servers", per_source=True
)
PASSWORD = SecretOption("password", SECRET, None, "Password.", key="kafka.password", per_source=True)
TRIAL: tuple[Option[Any], ...] = (*OPTIONS, SERVERS, PASSWORD)


def _file(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


LAYERS = ("flag", "environment", "project", "user", "dotfile", "system")


def _layered(tmp_path: Path, given: frozenset[str]) -> Loaded:
    files = {name: tmp_path / f"{name}.yaml" for name in LAYERS[2:]}
    for name, path in files.items():
        path.unlink(missing_ok=True)
        if name in given:
            path.write_text(f"repository:\n  url: from-{name}\n")
    flags = {"--repo": "from-flag"} if "flag" in given else {}
    environ = {"LOGKEEP_REPO": "from-environment"} if "environment" in given else {}
    return load(flags, environ, Places(None, tuple(files.values())))


@given(st.frozensets(st.sampled_from(LAYERS)))
def test_the_strongest_place_wins(tmp_path_factory: pytest.TempPathFactory, given: frozenset[str]) -> None:
    loaded = _layered(tmp_path_factory.mktemp("layers"), given)
    strongest = next((name for name in LAYERS if name in given), None)
    assert loaded.settings[REPO] == (f"from-{strongest}" if strongest else None)


def test_origins(tmp_path: Path) -> None:
    path = _file(tmp_path / "x.yaml", "gc:\n  age: 2d\ntransfer: {limit_upload: 1M}\n")
    loaded = load({"--verbose": 2}, {"LOGKEEP_REPOSITORY_URL": "u"}, Places(path, ()))
    origins = {o.name: str(loaded.settings.origin(o)) for o in (VERBOSE, REPO, GC_AGE, LIMIT_UPLOAD, SOURCE)}
    assert origins == {
        "verbose": "--verbose",
        "repo": "LOGKEEP_REPOSITORY_URL",
        "gc-age": f"{path}:2",
        "limit-upload": f"{path}:3",
        "source": "default",
    }
    assert loaded.settings.origin(REPO).place is SettingPlace.ENVIRONMENT
    assert loaded.settings[LIMIT_UPLOAD] == 1024 * 1024
    assert loaded.files == (path,)


def test_standard_places_honour_xdg_and_a_named_file(tmp_path: Path) -> None:
    home = {"HOME": "/h"}
    plain = standard_places(home, directory=tmp_path)
    assert plain.in_order() == (
        tmp_path / "logkeep.yaml",
        Path("/h/.config/logkeep/config.yaml"),
        Path("/h/.logkeep.yaml"),
        Path("/etc/logkeep/config.yaml"),
    )
    moved = standard_places(home | {"XDG_CONFIG_HOME": "/c"}, directory=tmp_path, named=Path("/n.yaml"))
    assert moved.required == Path("/n.yaml")
    assert moved.optional[0] == Path("/c/logkeep/config.yaml")
    assert standard_places(home | {"XDG_CONFIG_HOME": "rel"}, directory=tmp_path).optional == plain.optional


@pytest.mark.parametrize(
    ("text", "what", "line", "remedy"),
    (
        ("repositry:\n  url: x\n", "unknown key repositry.url", 2, "did you mean repository.url?"),
        ("repository:\n  ulr: x\n", "unknown key repository.ulr", 2, "did you mean repository.url?"),
        ("yes: true\n", "unknown key yes", 1, "options"),
        ("repository: file:///x\n", "repository is a section", 1, "below it"),
        ("repository:\n  url: 5\n", "repository.url must be text, not 5", 2, "give text"),
        ("repository:\n  url:\n", "repository.url must be text, not nothing", 2, "give text"),
        ("repository:\n  url: {a: b}\n", "repository.url must be text, not {'a': 'b'}", 2, "give text"),
        ("gc:\n  age: 10\n", "gc.age must be a duration", 2, "10s, 5m, 24h or 7d"),
        ("retention:\n  keep_last: many\n", "retention.keep_last must be a whole number", 2, "whole number"),
        (
            "sources:\n  prod:\n    hosts: zk1:2181\n",
            "unknown key sources.prod.hosts",
            3,
            "did you mean sources.prod.host?",
        ),
        ("sources: [a]\n", "sources is a section", 1, "below it"),
    ),
)
def test_mistakes_in_files(tmp_path: Path, text: str, what: str, line: int, remedy: str) -> None:
    path = _file(tmp_path / "x.yaml", text)
    with pytest.raises(ConfigError) as caught:
        load({}, {}, Places(path, ()))
    assert caught.value.what.startswith(what)
    assert caught.value.subject == f"{path}:{line}"
    assert remedy in caught.value.remedy


def test_empty_sections_are_fine(tmp_path: Path) -> None:
    path = _file(tmp_path / "x.yaml", "repository:\n  # url: later\nsources:\n")
    assert load({}, {}, Places(path, ())).settings[REPO] is None


def test_a_mistake_in_a_weaker_place_is_found_too(tmp_path: Path) -> None:
    path = _file(tmp_path / "x.yaml", "gc: {age: x}\n")
    with pytest.raises(ConfigError, match=r"gc\.age"):
        load({"--gc-age": "1d"}, {}, Places(path, ()))


def test_all_problems_are_gathered(tmp_path: Path) -> None:
    path = _file(tmp_path / "x.yaml", "gc: {age: x}\nfoo: 1\n")
    environ = {"LOGKEEP_GC_INTERVAL": "soon"}
    assert len(examine({}, environ, Places(path, ())).problems) == 3
    with pytest.raises(UsageError, match=r"and 2 more problems"):
        load({}, environ, Places(path, ()))


def test_wrong_and_unknown_variables() -> None:
    with pytest.raises(ConfigError, match="LOGKEEP_GC_AGE must be a duration"):
        load({}, {"LOGKEEP_GC_AGE": "x"}, NOWHERE)
    loaded = load({}, {"LOGKEEP_REPOO": "x", "LOGKEEP_CACHE_DIR": "/c", "LOGKEEP_CONFIG": "/f", "PATH": ""}, NOWHERE)
    assert loaded.warnings == ("unknown variable LOGKEEP_REPOO: did you mean LOGKEEP_REPO?",)


def test_two_names_of_one_variable() -> None:
    with pytest.raises(ConfigError, match="given twice, by LOGKEEP_REPOSITORY_URL and LOGKEEP_REPO"):
        load({}, {"LOGKEEP_REPO": "a", "LOGKEEP_REPOSITORY_URL": "b"}, NOWHERE)
    assert load({}, {"LOGKEEP_REPO": "a", "LOGKEEP_REPOSITORY_URL": "a"}, NOWHERE).settings[REPO] == "a"
    assert load({}, {"LOGKEEP_REPO": "", "LOGKEEP_REPOSITORY_URL": "b"}, NOWHERE).settings[REPO] == "b"


def test_wrong_flags_are_usage_errors() -> None:
    with pytest.raises(UsageError, match="--limit-upload must be a size") as caught:
        load({"--limit-upload": "fast"}, {}, NOWHERE)
    assert type(caught.value) is UsageError


def test_lists_and_spark_settings(tmp_path: Path) -> None:
    flags = {"--keep-tag": ("a,b", "c"), "--spark-conf": ("spark.x=a b",)}
    by_flag = load(flags, {}, NOWHERE).settings
    assert by_flag[KEEP_TAG] == ("a,b", "c")
    assert by_flag[SPARK_CONF] == (("spark.x", "a b"),)
    assert load({}, {"LOGKEEP_RETENTION_KEEP_TAG": "a,b"}, NOWHERE).settings[KEEP_TAG] == ("a", "b")
    path = _file(tmp_path / "x.yaml", "engine:\n  spark_conf: {spark.x: true, spark.y.z: 2}\n")
    assert load({}, {}, Places(path, ())).settings[SPARK_CONF] == (("spark.x", "true"), ("spark.y.z", "2"))


def test_a_sources_own_section_wins_within_its_file(tmp_path: Path) -> None:
    strong = _file(tmp_path / "strong.yaml", "repository: {source: prod}\n")
    weak = _file(
        tmp_path / "weak.yaml",
        "kafka: {bootstrap_servers: general}\nsources:\n  prod: {bootstrap_servers: own}\n  test: {}\n",
    )
    settings = load({}, {}, Places(strong, (weak,)), TRIAL).settings
    assert settings[SERVERS] == "own"
    assert str(settings.origin(SERVERS)) == f"{weak}:3"
    assert load({"--source": "test"}, {}, Places(weak, ()), TRIAL).settings[SERVERS] == "general"
    assert load({"--bootstrap-servers": "f"}, {}, Places(weak, ()), TRIAL).settings[SERVERS] == "f"


def test_a_mistyped_key_of_a_source(tmp_path: Path) -> None:
    path = _file(tmp_path / "x.yaml", "sources:\n  prod: {bootstrap_server: x}\n")
    with pytest.raises(ConfigError) as caught:
        load({}, {}, Places(path, ()), TRIAL)
    assert caught.value.remedy == "did you mean sources.prod.bootstrap_servers?"


def test_secrets_are_references(tmp_path: Path) -> None:
    def reference(flags: dict[str, object], environ: dict[str, str], text: str = "") -> object:
        path = _file(tmp_path / "x.yaml", text)
        return load(flags, environ, Places(path, ()), TRIAL).settings[PASSWORD]

    path = tmp_path / "x.yaml"
    assert reference({"--password-file": "/f"}, {}) == FileReference(Path("/f"))
    assert reference({"--password-command": "pass 'a b'"}, {}) == CommandReference(("pass", "a b"))
    assert reference({}, {"LOGKEEP_KAFKA_PASSWORD_FILE": "/f"}) == FileReference(Path("/f"))
    assert reference({}, {"LOGKEEP_KAFKA_PASSWORD": "pw"}) == EnvironmentReference("LOGKEEP_KAFKA_PASSWORD")
    assert reference({}, {}, "kafka: {password: 'env:PW'}") == EnvironmentReference("PW")
    assert reference({}, {}, "kafka: {password_command: [a, b]}") == CommandReference(("a", "b"), OriginFile(path))
    assert reference({}, {}, "kafka: {password: 'file:/f'}") == FileReference(Path("/f"))
    assert reference({"--source": "p"}, {}, "sources: {p: {password_file: /s}}") == FileReference(Path("/s"))


def test_a_secret_is_shown_as_stars(tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("hunter2hunter2")
    (tmp_path / "pw").chmod(0o600)
    settings = load({"--password-file": str(tmp_path / "pw")}, {}, NOWHERE, TRIAL).settings
    assert settings.by_name["password"].shown() == "***"
    secret = settings.secret(PASSWORD)
    assert secret is not None
    assert secret.reveal() == "hunter2hunter2"
    assert load({}, {}, NOWHERE, TRIAL).settings.secret(PASSWORD) is None


def test_a_plain_secret_in_yaml_is_refused_without_repeating_it(tmp_path: Path) -> None:
    path = _file(tmp_path / "x.yaml", "kafka:\n  password: hunter2hunter2\n")
    with pytest.raises(ConfigError) as caught:
        load({}, {}, Places(path, ()), TRIAL)
    assert "hunter2" not in f"{caught.value}{caught.value.remedy}"
    assert "_file" in caught.value.what


def test_two_references_in_one_place(tmp_path: Path) -> None:
    path = _file(tmp_path / "x.yaml", "kafka:\n  password_file: /f\n  password_command: x\n")
    with pytest.raises(ConfigError, match="password is given twice"):
        load({}, {}, Places(path, ()), TRIAL)


def test_every_declared_option_has_one_name_key_and_variable() -> None:
    spellings = [s for o in OPTIONS for s in o.spellings()]
    for names in (
        [o.name for o in OPTIONS],
        [s.key for s in spellings if s.key],
        [v for s in spellings for v in s.variables],
        [o.short for o in OPTIONS if o.short],
    ):
        assert len(names) == len(set(names))


def test_two_options_may_share_a_flag_that_users_type() -> None:
    loaded = load({"--resume-restore": "20261114020000"}, {}, NOWHERE)
    assert loaded.settings[RESUME_RESTORE] == 20261114020000
    assert loaded.settings[RESUME] is False
    with pytest.raises(UsageError, match="--resume must be a whole number"):
        load({"--resume-restore": "x"}, {}, NOWHERE)
