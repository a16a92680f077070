"""Real S3 servers for tests: SeaweedFS (behaves), moto (behaves, slower), rclone (ignores conditional writes).

    with seaweed(tmp_path) as server:
        server.make_bucket("b")
        open_store(server.url("b", "prefix"))

Each block starts one server on free loopback ports, waits until it answers, puts the credentials in this process's
environment (children inherit them; all servers share one key pair, so blocks may nest) and stops the server at the
end, also when the test fails. If the test process is killed, the kernel kills the server.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from logkeep.embedded.ports import free_ports
from tests.support.servers.child_processes import leashed

ACCESS_KEY = "logkeeptestkey"
SECRET_KEY = "logkeeptestsecret0123456789"
REGION = "us-east-1"
_READY_WITHIN_S = 180.0

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    "AWS_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
}

READER = {"AWS_ACCESS_KEY_ID": "logkeeptestreader", "AWS_SECRET_ACCESS_KEY": "logkeeptestreadersecret01234"}
"""An identity of SeaweedFS that may read and list, and nothing else."""


@dataclass(frozen=True)
class S3Server:
    """One running server."""

    kind: str
    endpoint: str

    def url(self, bucket: str, prefix: str = "") -> str:
        """The URL that a user would type for a repository there."""
        path = f"{bucket}/{prefix}" if prefix else bucket
        return f"s3://{path}?endpoint={quote(self.endpoint, safe=':/')}&region={REGION}"

    def client(self) -> Any:
        """A boto3 client, for what the store protocol cannot do: buckets, policies, lifecycle rules."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            config=Config(
                s3={"addressing_style": "path"}, retries={"max_attempts": 1}, connect_timeout=2, read_timeout=20
            ),
        )

    def make_bucket(self, name: str) -> str:
        """Create a bucket and return its name."""
        client = self.client()
        client.create_bucket(Bucket=name)
        client.close()
        return name


@contextmanager
def seaweed(tmp: Path) -> Iterator[S3Server]:
    """SeaweedFS's `weed server`: a real S3 server that honours conditional writes."""
    work = _work(tmp, "seaweed")
    s3, master, volume, filer, s3_rpc, master_rpc, volume_rpc, filer_rpc = free_ports(8)
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    reader = {
        "name": "reader",
        "credentials": [{"accessKey": READER["AWS_ACCESS_KEY_ID"], "secretKey": READER["AWS_SECRET_ACCESS_KEY"]}],
        "actions": ["Read", "List"],
    }
    config = work / "s3.json"
    config.write_text(json.dumps({"identities": [identity, reader]}))
    data = work / "data"
    data.mkdir(exist_ok=True)
    # Every port is named: the default of each inner one is its neighbour's plus 10,000, which may be taken.
    argv = [
        *(_program("weed"), "-logtostderr=true", "server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
        *("-s3", f"-s3.port={s3}", f"-s3.port.grpc={s3_rpc}", f"-s3.config={config}"),
        *(
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-s3.iam=false",
            "-s3.autoCreateBucket=false",
            "-master.telemetry=false",
        ),
        *(f"-master.port={master}", f"-master.port.grpc={master_rpc}"),
        *(
            f"-volume.port={volume}",
            f"-volume.port.grpc={volume_rpc}",
            "-volume.max=20",
            "-master.volumeSizeLimitMB=256",
        ),
        *(f"-filer.port={filer}", f"-filer.port.grpc={filer_rpc}"),
    ]
    with _served("seaweed", argv, s3, work) as server:
        yield server


@contextmanager
def moto_server(tmp: Path) -> Iterator[S3Server]:
    """moto's server: an imitation of AWS in memory; keeps lifecycle rules, object locks and versions."""
    (port,) = free_ports(1)
    argv = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with _served("moto", argv, port, _work(tmp, "moto")) as server:
        yield server


@contextmanager
def rclone_s3(tmp: Path) -> Iterator[S3Server]:
    """`rclone serve s3`: says 200 to conditional writes and overwrites. The store that must be found unsafe."""
    (port,) = free_ports(1)
    work = _work(tmp, "rclone")
    data = work / "data"
    data.mkdir(exist_ok=True)
    argv = [
        *(_program("rclone"), "serve", "s3", str(data), "--addr", f"127.0.0.1:{port}"),
        *("--config", str(work / "none.conf"), "--cache-dir", str(work / "cache")),
    ]
    # Not as an argument: other tests search the command lines of all processes for these keys.
    keys = {"RCLONE_AUTH_KEY": f'"{ACCESS_KEY},{SECRET_KEY}"'}
    with patch.dict(os.environ, keys), _served("rclone", argv, port, work) as server:
        yield server


def _work(tmp: Path, name: str) -> Path:
    path = tmp / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def _program(name: str) -> str:
    """The binaries come from pip: beside this interpreter, whatever PATH says."""
    return str(Path(sys.executable).parent / name)


@contextmanager
def _served(kind: str, argv: list[str], port: int, work: Path) -> Iterator[S3Server]:
    server = S3Server(kind=kind, endpoint=f"http://127.0.0.1:{port}")
    log = work / "server.log"
    with _environment(), leashed(argv, log) as process:
        _await(lambda: _answers(server), process, log)
        yield server


@contextmanager
def _environment() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in ENVIRONMENT}
    os.environ.update(ENVIRONMENT)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _answers(server: S3Server) -> bool:
    """Whether a bucket can be made and an object kept: a listening port is not yet a working store."""
    client = server.client()
    try:
        client.create_bucket(Bucket="ready")
        client.put_object(Bucket="ready", Key="ready", Body=b"ready")
    except (BotoCoreError, ClientError):
        return False
    finally:
        client.close()
    return True


def _await(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _READY_WITHIN_S
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(
                f"the server did not start; the end of its log:\n{log.read_text(errors='replace')[-3000:]}"
            )
        time.sleep(0.1)
