"""A secret, given in every place where secrets can be given, is found in no place where somebody could read it.

Here as a user meets it: real S3 credentials, a real Spark job with its event log, URLs. Secret options by file, command
and environment are tried in each way out by the unit tests of the command line; one of each is repeated here.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from logkeep.model.cache import cache_dir
from logkeep.repository.access import open_repository
from logkeep.store.access import open_store
from tests.support.cli.filled_repository import Filled, backed_up, document, new_repository
from tests.support.cli.processes import TRIAL, logkeep
from tests.support.command_lines import watched_command_lines
from tests.support.servers.s3 import ACCESS_KEY, ENVIRONMENT, REGION, SECRET_KEY, S3Server, seaweed

CANARIES = (SECRET_KEY, ACCESS_KEY)
PASSWORD = "kanarienvogel-0815"


def files_with(directory: Path, *secrets: str) -> list[str]:
    """Files below a directory, or their names, that hold one of the secrets."""
    return [
        str(path)
        for path in directory.rglob("*")
        if any(s in path.name or (path.is_file() and s.encode() in path.read_bytes()) for s in secrets)
    ]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with seaweed(tmp_path_factory.mktemp("s3")) as running:
        running.make_bucket("canary")
        yield running


@pytest.fixture(scope="module")
def url(server: S3Server) -> str:
    """A repository on real S3 with two backups."""
    found = server.url("canary", "repository")
    new_repository(open_store(found))
    place = open_repository(open_store(found)).place("prod")
    for end in (9, 20):
        backed_up(place, {0: end, 1: 3})
    return found


def credentials(home: Path, how: str) -> dict[str, str]:
    """The credentials in the environment, or in the file that the cloud's own tools use."""
    if how == "environment":
        return dict(ENVIRONMENT)
    file = home / ".aws" / "credentials"
    file.parent.mkdir()
    file.write_text(f"[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n")
    file.chmod(0o600)
    return {"AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": REGION}


@pytest.mark.xdist_group("canary")
class TestS3:
    @pytest.mark.parametrize(("how", "form"), (("environment", "text"), ("file", "json")))
    def test_no_output_and_no_log_shows_them(self, tmp_path: Path, url: str, how: str, form: str) -> None:
        home = tmp_path / "home"
        home.mkdir()
        env = credentials(home, how) | {"LOGKEEP_REPO": url}
        for words, code in (
            (("list",), 0),
            (("verify", "--level", "data"), 0),
            (("config", "show"), 0),
            (("list", "-r", url.replace("canary/", "missing/")), 41),
        ):
            for flags in ((), ("--json",), ("--log-file", "run.log")):
                done = logkeep(*words, *flags, "-vv", "--log-format", form, home=home, env=env)
                assert done.returncode == code, done.stderr
                assert not any(s in done.stdout + done.stderr for s in CANARIES)
        assert (home / "run.log").stat().st_size > 0
        (home / ".aws" / "credentials").unlink(missing_ok=True)
        assert files_with(tmp_path, *CANARIES) == []

    @pytest.mark.parametrize("how", ("environment", "file"))
    def test_spark_uses_them_and_shows_them_nowhere(self, tmp_path: Path, url: str, how: str) -> None:
        home, events, scratch = tmp_path / "home", tmp_path / "events", tmp_path / "tmp"
        for each in (home, events, scratch):
            each.mkdir()
        env = credentials(home, how) | {
            "LOGKEEP_CACHE_DIR": str(cache_dir(os.environ, Path.home())),
            "TMPDIR": str(scratch),
        }
        conf = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
            "spark.eventLog.compress": "false",
        }
        flags = [word for key, value in conf.items() for word in ("--spark-conf", f"{key}={value}")]
        words = ("verify", "-r", url, "--level", "data", "--engine", "spark", "--parallel", "1", "--json", *flags)
        with watched_command_lines() as seen:
            done = logkeep(*words, "-v", "--log-file", "run.log", home=home, env=env, true_start=True)
        assert done.returncode == 0, done.stderr
        shown = document(done)
        assert (shown["verdict"], shown["objects"]) == ("good", 7), "the workers could read"
        assert any(b"java" in line for line in seen)
        assert any(b"pyspark.daemon" in line for line in seen), "workers were watched too"
        assert not any(s.encode() in line for line in seen for s in CANARIES)
        written = [p for p in events.rglob("*") if p.is_file()]
        assert any(b"SparkListenerEnvironmentUpdate" in p.read_bytes() for p in written)
        assert not any(s in done.stdout + done.stderr for s in CANARIES)
        (home / ".aws" / "credentials").unlink(missing_ok=True)
        assert files_with(tmp_path, *CANARIES) == []
        assert files_with(cache_dir(os.environ, Path.home()) / "logs", *CANARIES) == []

    def test_no_stored_object_holds_them(self, url: str) -> None:
        store = open_store(url)
        objects = list(store.list(""))
        assert len(objects) > 10
        for info in objects:
            data = store.get(info.name, 1 << 20)
            assert not any(s in info.name or s.encode() in data for s in CANARIES)


URLS = (
    f"s3://key:{PASSWORD}@bucket/x",
    f"s3://bucket/x?secret_access_key={PASSWORD}",
    f"s3://bucket/x?endpoint=https://user:{PASSWORD}@host",
    f"az://container?sig={PASSWORD}",
    f"https://user:{PASSWORD}@host/x",
)


@pytest.mark.parametrize("address", URLS)
def test_urls_do_not_pass_their_password_on(tmp_path: Path, address: str) -> None:
    (tmp_path / "trusted.yaml").write_text(f"repository:\n  url: '{address}'\n")
    (tmp_path / "trusted.yaml").chmod(0o600)
    for words, env, code in (
        (("list", "-r", address, "-vv", "--log-file", "run.log"), {}, 40),
        (("list", "--json", "-vv", "--log-file", "run.log", "--log-format", "json"), {"LOGKEEP_REPO": address}, 40),
        (("store", "probe", address), {}, 40),
        (("config", "show", "-r", address), {}, 0),
        (("config", "show", "--json", "--config", "trusted.yaml"), {}, 0),
    ):
        done = logkeep(*words, home=tmp_path, env=env)
        assert done.returncode == code, done.stderr
        assert PASSWORD not in done.stdout + done.stderr, words
    (tmp_path / "trusted.yaml").unlink()
    assert files_with(tmp_path, PASSWORD) == []


@pytest.mark.parametrize("how", ("file", "command", "env"))
def test_a_crash_keeps_its_secrets(tmp_path: Path, how: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text(PASSWORD)
    secret.chmod(0o600)
    where = "AWS_SECRET_ACCESS_KEY" if how == "env" else str(secret)
    env = {"AWS_SECRET_ACCESS_KEY": PASSWORD} if how == "env" else {}
    done = logkeep("leak", how, where, "crash", "-vv", home=tmp_path, program=TRIAL, env=env)
    secret.unlink()
    assert done.returncode == 1
    assert "boom ***" in done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    assert files_with(tmp_path, PASSWORD) == []
    assert list(tmp_path.rglob("crashes/*.log"))


def test_the_search_would_find_them(repo: Filled) -> None:
    (repo.home / "leak").write_text(f"x{PASSWORD}x")
    assert files_with(repo.home, PASSWORD) == [str(repo.home / "leak")]
