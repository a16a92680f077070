"""Whatever is wrong: one error in three parts, its exit code, no traceback, and a repository as it was."""

import hashlib
import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from logkeep.embedded.ports import free_ports
from logkeep.repository.chain.documents import seal
from logkeep.repository.chain.format import FormatDocument
from logkeep.store.access import open_store
from tests.support.cli.filled_repository import Filled, new_repository, tree
from tests.support.cli.forker import ForkedProcess
from tests.support.cli.processes import REAL, clean_environment, logkeep
from tests.support.servers.s3 import ENVIRONMENT, READER, S3Server, seaweed
from tests.support.zookeeper.handmade_directories import MadeServer

QUICK = {"LOGKEEP_TRANSFER_RETRY_FOR": "1s"}


def refused(repo: Filled, *arguments: str, code: int, env: dict[str, str] | None = None) -> str:
    """The command fails with this code in exactly one error; nothing below the repository has changed."""
    before = tree(repo.root)
    done = repo.run(*arguments, code=code, env=env)
    assert tree(repo.root) == before
    assert done.stdout == ""
    return one_error(done.stderr)


def one_error(shown: str) -> str:
    assert shown.count("error: ") == 1, shown
    assert shown.count("\n  try: ") == 1, shown
    assert "Traceback" not in shown
    return shown


class TestAddress:
    @pytest.mark.parametrize(
        ("url", "code", "said"),
        (
            ("ftp://host/dir", 40, "unknown kind of store ftp://"),
            ("s3://", 40, "has no bucket"),
            ("s3://b/prefix", 40, "cannot be the name of a bucket"),
            ("s3://bucket/../x", 40, "not allowed"),
            ("s3://bucket?zone=eu", 40, "'zone'"),
            ("s3://bucket?endpoint=nonsense", 40, "not an http(s) URL"),
            ("file://host/dir", 40, "three slashes"),
            ("", 40, "empty"),
            ("/no/such/directory", 41, "no such directory"),
            ("/etc/hostname", 41, "not a directory"),
            (".", 41, "there is no repository"),
        ),
    )
    def test_wrong(self, repo: Filled, url: str, code: int, said: str) -> None:
        assert said in refused(repo, "list", "-r", url, code=code)

    def test_none(self, tmp_path: Path) -> None:
        done = logkeep("list", home=tmp_path)
        assert done.returncode == 40
        assert "LOGKEEP_REPO" in one_error(done.stderr)

    @pytest.mark.parametrize(
        "url",
        (
            "s3://key:hunter22@bucket/x",
            "s3://bucket?secret_access_key=hunter22",
            "s3://bucket?endpoint=https://u:hunter22@host",
            "az://container?sig=hunter22",
            "ftp://u:hunter22@host",
        ),
    )
    def test_a_password_is_refused_and_not_repeated(self, repo: Filled, url: str) -> None:
        for flags in (("-r", url), ("-r", url, "--json"), ("-r", url, "-vv")):
            done = repo.run("list", *flags, code=40)
            assert "hunter22" not in done.stdout + done.stderr


class TestConfiguration:
    @pytest.mark.parametrize(
        ("text", "said"),
        (
            ("verify:\n  level: 7\n", "verify.level"),
            ("retention:\n  keep_last: many\n", "retention.keep_last"),
            ("retention:\n  keep_lost: 3\n", "keep_last"),
            ("retention:\n  keep_last: 3\n  keep_last: 4\n", "keep_last"),
            ("- a\n- b\n", "logkeep.yaml"),
            ("a: [1\n", "logkeep.yaml"),
            ("a: !!python/object/apply:os.system ['touch x']\n", "logkeep.yaml"),
            ("\x00", "logkeep.yaml"),
        ),
        ids=("type", "number", "unknown", "twice", "list", "syntax", "code", "binary"),
    )
    def test_wrong(self, repo: Filled, text: str, said: str) -> None:
        (repo.home / "logkeep.yaml").write_text(text)
        assert said in refused(repo, "list", code=40)
        assert not (repo.home / "x").exists()

    def test_variables(self, repo: Filled) -> None:
        assert "LOGKEEP_TRANSFER_RETRY_FOR" in refused(repo, "list", code=40, env={"LOGKEEP_TRANSFER_RETRY_FOR": "x"})


class TestEngine:
    """What cannot be honoured is refused before anything is opened: here no broker and no master answers."""

    @pytest.mark.parametrize("verb", (("verify",), ("kafka", "backup", "--bootstrap-servers", "127.0.0.1:1")))
    @pytest.mark.parametrize(
        ("flags", "said"),
        (
            (("--engine", "inline", "--parallel", "4"), "--engine inline runs one unit at a time"),
            (("--master", "spark://127.0.0.1:1", "--parallel", "4"), "with --master the master decides"),
            (("--master", "local[2]", "--parallel", "2"), "with --master the master decides"),
            (("--engine", "inline", "--master", "local[2]"), "--engine is inline"),
            (("--spark-conf", "spark.authenticate=false"), "always authenticated and encrypted"),
            (("--spark-conf", "spark.network.crypto.enabled=false"), "always authenticated and encrypted"),
            (("--master", "spark://127.0.0.1:1"), "would not be authenticated"),
            (("--spark-conf", "spark.authenticate.secret=hunter22"), "--spark-secret-file"),
        ),
    )
    def test_contradictions(self, repo: Filled, verb: tuple[str, ...], flags: tuple[str, ...], said: str) -> None:
        assert said in refused(repo, *verb, *flags, code=40)

    def test_a_weaker_spark_in_the_configuration(self, repo: Filled) -> None:
        (repo.home / "logkeep.yaml").write_text("engine: {spark_conf: {spark.authenticate: false}}\n")
        assert "always authenticated and encrypted" in refused(repo, "verify", code=40)

    def test_a_secret_that_others_can_read(self, repo: Filled) -> None:
        secret = repo.home / "spark-secret"
        secret.write_text("hunter22hunter22")
        secret.chmod(0o644)
        (repo.home / "logkeep.yaml").write_text(f"engine: {{spark_secret: 'file:{secret}'}}\n")
        shown = refused(repo, "verify", "--master", "spark://127.0.0.1:1", code=40)
        assert "can be read by others" in shown
        assert "hunter22" not in shown

    def test_what_can_be_honoured(self, repo: Filled) -> None:
        repo.run("verify", "--engine", "inline", "--parallel", "1", "--level", "data")
        repo.run("verify", "--parallel", "4", "--level", "data")


class TestSource:
    def test_unknown_and_several(self, repo: Filled) -> None:
        assert "the sources are: prod" in refused(repo, "verify", "--source", "test", code=40)
        assert "not a source name" in refused(repo, "verify", "--source", "../x", code=40)
        (repo.root / "sources" / "other").mkdir()
        (repo.root / "sources" / "other" / "source.json").write_text("x")
        assert "other, prod" in refused(repo, "verify", code=40)


def resealed(path: Path, change: Callable[[dict[str, object]], object]) -> None:
    """Edit a document and seal it anew, as a later release would have written it."""
    line = json.loads(path.read_bytes().partition(b"\n")[0])
    change(line)
    data = (json.dumps(line, separators=(",", ":")) + "\n").encode()
    path.write_bytes(data + b'{"sha256":"' + hashlib.sha256(data).hexdigest().encode() + b'"}\n')


class TestDocuments:
    def test_a_truncated_manifest(self, repo: Filled) -> None:
        path = sorted(repo.root.glob("sources/prod/backups/*/manifest.*.json"))[-1]
        path.write_bytes(path.read_bytes()[:-40])
        assert repo.name(path) in refused(repo, "info", "latest", code=10)
        assert repo.name(path) in repo.run("verify", code=10).stdout

    def test_a_truncated_format_object_has_a_copy(self, repo: Filled) -> None:
        (repo.root / "logkeep.json").write_bytes(b'{"type":"for')
        before = repo.tree()
        done = repo.run("list")
        assert "logkeep.json" in done.stderr
        assert "logkeep repair" in done.stderr
        assert repo.tree() == before
        (repo.root / "logkeep.copy.json").write_bytes(b"")
        assert "logkeep.json" in refused(repo, "list", code=10)
        assert "there is already a repository" in refused(repo, "init", code=40)

    def test_a_format_object_that_is_gone(self, repo: Filled) -> None:
        for name in ("logkeep.json", "logkeep.copy.json"):
            (repo.root / name).unlink()
        assert "there is no repository" in refused(repo, "list", code=41)
        assert "not empty" in refused(repo, "init", code=40)

    @pytest.mark.parametrize("words", (("list",), ("verify",), ("prune", "-y", "--keep-last", "1"), ("repair", "-y")))
    def test_an_unknown_required_feature_ends_it_before_anything_is_read(
        self, repo: Filled, words: tuple[str, ...]
    ) -> None:
        for name in ("logkeep.json", "logkeep.copy.json"):
            resealed(repo.root / name, lambda d: d.update(required_features=["encrypted"]))
        # Anything else that is touched would be met as an error: it is not what its name says.
        moved = repo.home / "moved"
        (repo.root / "sources").rename(moved)
        (repo.root / "sources").write_text("not a directory")
        assert "encrypted" in refused(repo, *words, code=43)

    def test_an_unknown_optional_feature_is_no_trouble(self, repo: Filled) -> None:
        resealed(repo.root / "logkeep.json", lambda d: d.update(optional_features=["fast"]))
        repo.run("list")

    @pytest.mark.parametrize(
        "pattern", ("logkeep.json", "sources/prod/commits/*5.json", "sources/prod/backups/*/manifest.*.json")
    )
    def test_a_later_version_of_a_document(self, repo: Filled, pattern: str) -> None:
        path = sorted(repo.root.glob(pattern))[-1]
        resealed(path, lambda d: d.update(version=9))
        error = refused(repo, "info", "latest", code=43)
        assert "version 9" in error
        assert "upgrade" in error

    def test_the_seal_of_these_tests_is_the_real_one(self, repo: Filled) -> None:
        path = repo.root / "logkeep.json"
        before = msgspec.json.decode(path.read_bytes().partition(b"\n")[0], type=FormatDocument)
        resealed(path, dict.copy)
        assert msgspec.json.decode(path.read_bytes().partition(b"\n")[0], type=FormatDocument) == before
        assert path.read_bytes() == seal(before)


def in_namespace(repo: Filled, mount: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command after a mount that only it can see; needs no root."""
    command = ["unshare", "-rm", "sh", "-ec", f'{mount}; shift; exec "$@"', "sh", str(repo.root), *REAL, *arguments]
    environ = clean_environment(repo.home, LOGKEEP_REPO=repo.url)
    return subprocess.run(
        command, env=environ, cwd=repo.home, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1"'


class TestReadOnly:
    @pytest.mark.parametrize(
        "words", (("prune", "--keep-last", "1", "-y"), ("hold", "latest"), ("init",), ("delete", "latest", "-y"))
    )
    def test_writers_are_refused(self, repo: Filled, words: tuple[str, ...]) -> None:
        before = repo.tree()
        done = in_namespace(repo, READ_ONLY, *words)
        assert done.returncode == 52, done.stderr
        one_error(done.stderr)
        assert repo.tree() == before

    @pytest.mark.parametrize(
        "words", (("list",), ("info", "latest"), ("status",), ("prune", "--keep-last", "1", "-n"), ("repair", "-n"))
    )
    def test_readers_work(self, repo: Filled, words: tuple[str, ...]) -> None:
        done = in_namespace(repo, READ_ONLY, *words)
        assert (done.returncode, done.stderr) == (0, "")

    def test_a_verification_is_told_and_not_remembered(self, repo: Filled) -> None:
        done = in_namespace(repo, READ_ONLY, "verify", "--level", "data", "--progress", "never")
        assert (done.returncode, done.stderr) == (0, "")
        assert "read-only" in done.stdout


class TestFullDisk:
    """A file system so small that the repository fills it."""

    FULL = 'cp -r "$1" "$1.kept"; mount -t tmpfs -o size=300k tmpfs "$1"; cp -r "$1.kept/." "$1"; '
    FILL = 'dd if=/dev/zero of="$1/filling" bs=4k 2>/dev/null || true'

    def test_writers_are_told(self, repo: Filled) -> None:
        done = in_namespace(repo, self.FULL + self.FILL, "hold", "latest")
        assert done.returncode == 20, done.stderr
        assert "space" in one_error(done.stderr)
        assert "\n  20   backup failed, or a disk or store is full\n" in repo.run("hold", "--help").stdout

    @pytest.mark.parametrize("engine", ("inline", pytest.param("spark", marks=pytest.mark.soak)))
    def test_a_backup_of_zookeeper_names_the_cause(self, engine: str, repo: Filled) -> None:
        """Of Kafka: tests/integration/kafka/backup/test_full_disk.py."""
        server = MadeServer(repo.home / "server")
        server.snapshot(1)
        server.log(range(2, 6), data=os.urandom(200_000))
        where = ("--source", "zk", "--data-dir", str(server.root / "data"), "--zk-host", "127.0.0.1:1")
        done = in_namespace(
            repo, self.FULL + ":", "zookeeper", "backup", *where, "--engine", engine, "--retry-for", "1s"
        )
        assert done.returncode == 20, done.stderr
        assert "no space left" in one_error(done.stderr)
        assert "free space" in done.stderr

    @pytest.mark.parametrize("size", ("64k", "20m"))
    def test_init_names_one_cause_and_leaves_nothing(self, size: str, repo: Filled) -> None:
        script = 'mount -t tmpfs -o size="$0" tmpfs "$1"; where=$1; shift; "$@"; echo "$?"; find "$where"'
        words = ["unshare", "-rm", "sh", "-c", script, size]
        small = repo.home / "small"
        small.mkdir()
        done = subprocess.run(
            [*words, str(small), *REAL, "init", "-r", str(small / "above" / "repo")],
            env=clean_environment(repo.home), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stdout.splitlines() == ["20", str(small)]
        assert "no space left on the device" in one_error(done.stderr).splitlines()[0]
        assert len(done.stderr.splitlines()) == 3

    def test_nothing_is_lost(self, repo: Filled) -> None:
        script = self.FULL + self.FILL + f'; {" ".join(REAL)} prune --keep-last 1 -y && exit 99; rm "$1/filling"'
        done = in_namespace(repo, script, "verify", "--level", "data", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["verdict"] == "good"

    def test_readers_work(self, repo: Filled) -> None:
        assert in_namespace(repo, self.FULL + self.FILL, "list").returncode == 0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with seaweed(tmp_path_factory.mktemp("s3")) as running:
        running.make_bucket("bucket")
        yield running


@pytest.mark.xdist_group("e2e-s3")
class TestS3:
    def test_a_missing_bucket(self, repo: Filled, server: S3Server) -> None:
        for words in (("list",), ("init",)):
            error = refused(repo, *words, "-r", server.url("no-such-bucket"), code=41, env=ENVIRONMENT)
            assert "no such bucket" in error

    def test_an_empty_bucket(self, repo: Filled, server: S3Server) -> None:
        assert "there is no repository" in refused(
            repo, "list", "-r", server.url("bucket", "empty"), code=41, env=ENVIRONMENT
        )

    @pytest.mark.parametrize("words", (("list",), ("init",), ("store", "probe")))
    @pytest.mark.parametrize("name", ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    def test_wrong_credentials(self, repo: Filled, server: S3Server, words: tuple[str, ...], name: str) -> None:
        target = (server.url("bucket"),) if words[0] == "store" else ("-r", server.url("bucket"))
        error = refused(repo, *words, *target, code=52, env={**ENVIRONMENT, name: "wrong0123456789"})
        assert "wrong0123456789" not in error

    def test_an_identity_that_may_only_read(self, repo: Filled, server: S3Server) -> None:
        url = server.url("bucket", "read")
        new_repository(open_store(url))
        before = [(i.name, i.version) for i in open_store(url).list("")]
        reader = {**ENVIRONMENT, **READER}
        assert "no backups" in repo.run("list", "-r", url, env=reader).stdout
        refused(repo, "init", "-r", server.url("bucket", "other"), code=52, env=reader)
        assert [(i.name, i.version) for i in open_store(url).list("")] == before


class TestUnreachable:
    def test_nobody_listens(self, repo: Filled) -> None:
        (port,) = free_ports(1)
        self._refused(repo, f"http://127.0.0.1:{port}")

    def test_no_such_host(self, repo: Filled) -> None:
        self._refused(repo, "http://no-such-host.invalid")

    def test_somebody_listens_and_hangs_up(self, repo: Filled) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(0.2)
            port = listener.getsockname()[1]
            command = [*REAL, "list", "-r", f"s3://bucket?endpoint=http://127.0.0.1:{port}&region=x"]
            environ = clean_environment(repo.home, **ENVIRONMENT, **QUICK)
            with ForkedProcess(command, env=environ, stderr=subprocess.PIPE, text=True) as running:
                while running.poll() is None:
                    try:
                        listener.accept()[0].close()
                    except TimeoutError:
                        continue
                assert running.stderr is not None
                assert running.returncode == 51
                one_error(running.stderr.read())

    def _refused(self, repo: Filled, endpoint: str) -> None:
        url = f"s3://bucket/x?endpoint={endpoint}&region=x"
        for words in (("list",), ("init",)):
            error = refused(repo, *words, "-r", url, code=51, env={**ENVIRONMENT, **QUICK})
            assert endpoint in error
        refused(repo, "store", "probe", url, code=51, env=ENVIRONMENT)
