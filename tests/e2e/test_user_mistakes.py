"""Nothing that a user can do wrong ends with 1: one error, its remedy, and an exit code that says what to correct.

Each row is a call of one of the programs. `{…}` are places that the fixture makes; a row that needs a file of client
properties has its lines after `--command-config`.
"""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from logkeep.store.access import open_store
from tests.support.cli.filled_repository import new_repository
from tests.support.cli.processes import clean_environment, logkeep
from tests.support.hostile.calls import piped
from tests.support.hostile.repositories import kafka_repository, zookeeper_directories, zookeeper_repository

pytestmark = pytest.mark.xdist_group("user-mistakes")

NUMBER = "9" * 40
LONG = "x" * 5000
BACKUP = "kafka backup --dry-run --source new -r {kafka}"
RESTORE = "kafka restore latest --dry-run -r {kafka} --bootstrap-servers 127.0.0.1:1"
SUBTREE = "zookeeper restore-subtree latest /a --dry-run -r {zk}"
FILES = ("{directory}", "{binary}", "{missing}", "/dev/zero", LONG)
"""What stands in the place of a file or directory of the right kind."""

AT_FILES = (
    f"{BACKUP} --command-config",
    f"{BACKUP} --bootstrap-servers 127.0.0.1:1 --scram-to age1x --controllers 127.0.0.1:1 --controller-config",
    "verify --level data -r {kafka} --master spark://127.0.0.1:1 --spark-secret-file",
    "list -r",
    "kafka salvage --source new --dry-run -r {kafka} --log-dirs",
    "kafka restore latest --dry-run -r {kafka} --to-log-dirs",
    "zookeeper backup --dry-run -r {zk} --data-dir",
    "zookeeper backup -r {zk} --admin-server http://127.0.0.1:1 --auth-file",
    "zookeeper import -r {zk}",
    "zookeeper restore plan latest -r {zk}",
    "zookeeper restore --rollback -y --data-dir",
    "zookeeper restore-subtree --undo",
    "zookeeper repair -r {zk} --data-dir",
    "zookeeper diff -r {zk} latest",
    "app backup shop -r {scratch} --data",
    "app backup shop -r {kafka} --data",
    "app checkpoint shop -r {kafka} --data",
    "app restore latest -r {kafka} --dry-run --data",
    "zeebe verify --store",
    "zeebe backup --management http://127.0.0.1:1 --store",
    "zeebe import -r {fresh} --store",
    "zeebe export -r {kafka} --to",
    "kafka import --dry-run -r {kafka}",
    "kafka dataset verify",
    "kafka dataset info",
    "kafka dataset reindex -y",
    "kafka dataset prune --older-than 1d -y",
    "kafka show topic -r {zk} --schema-dir",
    "sql select -r {kafka} --engine inline --output",
    "zkbackup backup --zk-host 127.0.0.1:1 --output-dir {scratch} --zk-data-dir",
    "zkbackup verify --backup-dir",
    "zkbackup restore --zk-data-dir {scratch} --zk-log-dir {scratch} --zk-host 127.0.0.1:1 --backup-dir",
    "zkbackup restore --rollback --zk-host 127.0.0.1:1 --force --zk-log-dir {scratch} --zk-data-dir",
)
ADDRESSES = ("x:0", "x:99999", "a..b:9092", f"{'x' * 300}:1", "a\0b:1", "[::1:1", "host name:1", "h:１")
AT_ADDRESSES = (f"{BACKUP} --bootstrap-servers", "zookeeper backup -r {zk} --data-dir {server} --zk-host")
URLS = ("x", "http://", "http://[::1", "http://x:99999", "http://a..b:1", "ftp://x", "http://x y:1", "http://{web}")
NUMBERS = {
    f"{BACKUP} --bootstrap-servers 127.0.0.1:1": (
        *("--parallel", "--interval", "--retry-for", "--lease-ttl", "--segment-bytes", "--limit-upload", "--id"),
    ),
    "prune -n -r {kafka}": ("--keep-last", "--keep-within", "--gc-age", "--gc-interval", "--lease-ttl"),
    RESTORE: ("--until-time", "--partitions", "--repartition", "--rename", "--topics", "--limit-produce"),
    "zkbackup prune --backup-base-dir {scratch}": ("--keep-days", "--keep-count"),
    "kafka dataset prune {missing}": ("--older-than",),
    "kafka fold -r {zk} --dry-run": ("--lease-ttl", "--parallel"),
    "kafka show topic -r {zk}": ("--limit", "--last", "--since", "--until"),
    "app backup shop -r {kafka} --data {missing}": ("--id", "--timeout"),
    "zeebe backup --management http://127.0.0.1:1 --store {scratch}": ("--id", "--timeout"),
    "sql select -r {kafka}": ("--limit",),
}
WRONG = ("", NUMBER, "99999999w")
PROPERTIES = (
    "security.protocol=FOO",
    f"request.timeout.ms={NUMBER}",
    "socket.connection.setup.timeout.ms=9999999999999",
    "receive.buffer.bytes=99999999999",
    f"client.id={LONG * 7}",
    "security.protocol=SSL ssl.truststore.location={missing}",
    "security.protocol=SSL ssl.truststore.location={directory}",
    "security.protocol=SSL ssl.truststore.location={text}",
    "security.protocol=SSL ssl.truststore.location={empty}",
    "security.protocol=SSL ssl.truststore.location={der} ssl.truststore.password=x",
    "security.protocol=SSL ssl.truststore.location={pem}",
    "security.protocol=SSL ssl.truststore.certificates=é",
    "security.protocol=SSL ssl.keystore.location={missing}",
    "security.protocol=SSL ssl.keystore.location={pem}",
    "security.protocol=SSL ssl.keystore.location={der} ssl.keystore.password=x",
    "security.protocol=SSL ssl.keystore.key=é ssl.keystore.certificate.chain=é",
    "security.protocol=SASL_PLAINTEXT sasl.mechanism=FOO",
    "security.protocol=SASL_PLAINTEXT sasl.mechanism=PLAIN",
    "security.protocol=SASL_PLAINTEXT sasl.mechanism=PLAIN sasl.jaas.config=x",
    "security.protocol=SASL_PLAINTEXT sasl.mechanism=OAUTHBEARER",
    "security.protocol=SASL_PLAINTEXT sasl.mechanism=OAUTHBEARER logkeep.oauthbearer.token.command=a'b",
    "security.protocol=SASL_PLAINTEXT sasl.mechanism=OAUTHBEARER sasl.oauthbearer.token.endpoint.url=file://[bad",
    "security.protocol=SASL_PLAINTEXT sasl.mechanism=OAUTHBEARER sasl.oauthbearer.token.endpoint.url=file:///a%00b",
)
OTHERS = (
    *(
        f"list -r {url}"
        for url in ("s3://", "s3://b?x", "az://", "ftp://x", "://", "file://host/x", "s3://b?endpoint=x")
    ),
    *(f"info -r {{kafka}} {name}" for name in ("0", NUMBER, "x", "é", "../x", "latest~9999999999")),
    *(f"zookeeper restore --data-dir {{scratch}} --dry-run -r {{zk}} {name}" for name in ("latest@0x", f"{NUMBER}")),
    *(f"verify --level data -r {{kafka}} --master {name}" for name in ("foo", "local[", "local[0]", "spark://host")),
    *(f"{BACKUP} --bootstrap-servers 127.0.0.1:1 {words}" for words in ("--scram-to age1", "--topics (", "--tag =v")),
    "kafka export latest -r {kafka} --format kafka-backup-v1",
    *(
        f"kafka export latest -r {{kafka}} --format kafka-backup-v1 --to {to}"
        for to in ("ftp://x", "{text}", "{kafka}")
    ),
    f"{BACKUP} --bootstrap-servers 127.0.0.1:1 --segment-bytes 1",
    f"{BACKUP} --bootstrap-servers 127.0.0.1:1 --to {{scratch}}",
    "kafka backup --format kafka-backup-v1 --to {scratch}/x --bootstrap-servers 127.0.0.1:1 --tag a",
    "kafka backup --format kafka-backup-v1 --bootstrap-servers 127.0.0.1:1",
    "kafka backup --format kafka-backup-v1 --to {scratch}/x --bootstrap-servers 127.0.0.1:1 --follow --dry-run",
    f"{SUBTREE} --zk-host a..b:1",
    f"{BACKUP} --bootstrap-servers {{web}}",
    "zookeeper restore survey --to {scratch}/s.json --data-dir {missing}",
    *(
        f"app {words} -r {{kafka}}"
        for words in ("status", "status x", f"status {NUMBER}", "restore x --data {scratch}")
    ),
    *(f"app simulate --seeds {seeds}" for seeds in ("x", "5..2", NUMBER)),
    *(f"app simulate --application {file}" for file in ("{missing}", "{scratch}", "{missing}:shop")),
    *(f"app serve shop --data {{scratch}} -r {{kafka}} --listen {where}" for where in ("x", "x:99999", "127.0.0.1:-1")),
    *(f"zeebe {words} --store {{directory}}" for words in ("verify 7", "verify x", "import 7 -r {kafka}")),
    *(f"zeebe backup --store {{directory}} --management {url}" for url in ("x", "ftp://x", "http://{web}")),
    *(f"sql {query} -r {{kafka}} --engine inline" for query in ("nonsense", "select", "select --backup x")),
    *(f"kafka show {records} -r {{kafka}}" for records in ("none", "t:x", "t:0:x", "t:0:1:2")),
    *(f"kafka schemas {words} -r {{kafka}}" for words in ("show 999", "show x", "restore latest -n")),
    *(f"kafka generations {words} -r {{zk}}" for words in ("", "new --topics .* -y", "cancel --topics .* -y")),
    *(f"kafka {words} -r {{zk}}" for words in ("fold -y", "optimize -y", "groups", "groups restore", "export")),
    "list -r {kafka} --log-file {directory}",
    f"status -r {{kafka}} --metrics-file {LONG}",
    "zkbackup list --backup-base-dir {missing}",
    "zkbackup list --backup-base-dir {text}",
    f"zkbackup info one --backup-base-dir {LONG}",
    "zkbackup prune --keep-days 1 --backup-base-dir {missing}",
    "completion tcsh",
    "nothing-like-this",
    "zkbackup nothing-like-this",
)


def _rows() -> Iterator[str]:
    yield from (f"{call} {file}" for call in AT_FILES for file in FILES)
    yield from (f"{call}\n{address}" for call in AT_ADDRESSES for address in ADDRESSES)
    yield from (f"zookeeper backup -r {{zk}} --admin-server\n{url}" for url in URLS)
    yield from (f"{call} {flag}\n{wrong}" for call, flags in NUMBERS.items() for flag in flags for wrong in WRONG)
    yield from (f"{BACKUP} --command-config\nproperties:{lines}" for lines in PROPERTIES)
    yield from OTHERS


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    root = tmp_path_factory.mktemp("mistakes")
    kafka_repository(root / "kafka")
    zookeeper_repository(root / "zk", zookeeper_directories(root / "server"))
    for name, content in {
        "empty": b"",
        "binary": bytes(range(256)),
        "text": b"hello\n",
        "der": b"\x30\x82\x01\x00" + bytes(300),
        "pem": b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    }.items():
        (root / name).touch(mode=0o600)
        (root / name).write_bytes(content)
    for name in ("directory", "scratch", "fresh"):
        (root / name).mkdir()
    new_repository(open_store(f"file://{root / 'fresh'}"))
    names = ("kafka", "zk", "fresh", "empty", "binary", "text", "der", "pem", "directory", "scratch", "missing")
    with _web_server() as web:
        yield {**{name: str(root / name) for name in names}, "server": str(root / "server/data"), "web": web}


class _web_server:  # noqa: N801 - used like a function
    """Answers everything as an HTTP server answers what is not HTTP."""

    def __enter__(self) -> str:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __exit__(self, *_exc: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                made, _ = self._listener.accept()
                with made, suppress(OSError):
                    made.recv(4096)
                    made.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def _call(row: str, places: dict[str, str], scratch: Path) -> tuple[str, list[str]]:
    known, *last = row.split("\n")
    words = [word.format(**places) for word in known.split()]
    program = words.pop(0) if words[0] == "zkbackup" else "logkeep"
    for text in last:
        if text.startswith("properties:"):
            file = scratch / "client.properties"
            file.touch(mode=0o600)
            lines = ["bootstrap.servers=127.0.0.1:1", *text.removeprefix("properties:").format(**places).split(" ")]
            file.write_text("\n".join(lines), encoding="latin-1")
            words.append(str(file))
        else:
            words.append(text.format(**places))
    return program, words


@pytest.mark.parametrize("call", dict.fromkeys(row.split("\n")[0].split(" {")[0][:60] for row in _rows()))
def test_a_mistake(call: str, places: dict[str, str], tmp_path: Path) -> None:
    """All rows of one kind in one test: a row takes a few milliseconds."""
    wrong = []
    for row in (row for row in _rows() if row.split("\n")[0].split(" {")[0][:60] == call):
        program, words = _call(row, places, tmp_path)
        shown = piped(program, words, tmp_path)
        one_error = shown.text.count("error: ") == 1 and shown.text.count("\n  try: ") == 1
        if shown.code in {0, 1, 2} or not one_error or "unexpected" in shown.text:
            wrong.append((shown.code, row[:200], shown.text[-400:]))
    assert wrong == []


STREAMS = {
    "stdout is closed": (">&-", 0),
    "stderr is closed": ("2>&-", 0),
    "stdin is closed": ("<&-", 0),
    "all are closed": (">&- 2>&- <&-", 0),
    "the reader has gone": ("| true", 0),
    "the disk is full": (">/dev/full", 40),
}


@pytest.mark.parametrize("program", ("logkeep.cli", "logkeep.cli.zkbackup"))
@pytest.mark.parametrize(("streams", "code"), STREAMS.values(), ids=STREAMS)
def test_standard_streams(program: str, streams: str, code: int, tmp_path: Path) -> None:
    words = f"{sys.executable} -m {program} list --help {streams}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", words], env=clean_environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == code, done.stderr


def test_a_closed_stdout_is_not_the_next_file(places: dict[str, str], tmp_path: Path) -> None:
    """A file that the run opens would get the number 1, and the answer would be written into it."""
    command = [sys.executable, "-m", "logkeep.cli", "list", "-r", places["kafka"], "--log-file", str(tmp_path / "log")]
    done = subprocess.run(
        ["bash", "-c", 'exec "$@" >&- 2>&-', "bash", *command], env=clean_environment(tmp_path), check=False
    )
    assert done.returncode == 0
    assert "SOURCE" not in (tmp_path / "log").read_text()


def test_a_working_directory_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f'cd {gone} && rmdir {gone} && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", sys.executable, "-m", "logkeep.cli", "list", "-r", "x"],
        env=clean_environment(tmp_path) | {"PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 40, done.stderr
    assert "working directory" in done.stderr


@pytest.mark.parametrize("file", ("directory", "binary", "missing"))
def test_a_configuration_file(file: str, places: dict[str, str], tmp_path: Path) -> None:
    done = logkeep("list", "-r", places["kafka"], "--config", places[file], home=tmp_path)
    assert done.returncode == 40
    assert done.stderr.count("\n  try: ") == 1
