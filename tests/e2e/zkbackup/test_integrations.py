"""How others call zkbackup: the container command of the design on read-only copies, and its wrapper script."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from shutil import copytree

import pytest

from tests.support.cli.bundle_documents import PROGRAM
from tests.support.cli.external_programs import put_programs
from tests.support.cli.processes import clean_environment
from tests.support.cli.zkbackup_server import Served
from tests.support.servers.s3 import seaweed

pytestmark = pytest.mark.xdist_group("zookeeper-e2e")


def test_the_container_command_on_read_only_volumes(shop: Served) -> None:
    """The design's CronJob: both volumes of the server are mounted read-only, the server runs elsewhere."""
    data, logs, backups = (shop.home / name for name in ("data", "datalog", "backup"))
    copytree(shop.server.data_dir, data)
    copytree(shop.server.log_dir, logs)
    mounts = "; ".join(f'mount --bind "{d}" "{d}" && mount -o remount,ro,bind "{d}"' for d in (data, logs))
    command = [
        "backup",
        f"--zk-data-dir={data}/version-2",
        f"--zk-log-dir={logs}/version-2",
        f"--output-dir={backups}/zookeeper",
        f"--zk-host={shop.server.client}",
    ]
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-ec", f'{mounts}; exec "$@"', "sh", *PROGRAM, *command],
        env=clean_environment(shop.home), cwd=shop.home, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (bundle,) = (backups / "zookeeper").iterdir()
    assert bundle.name.startswith("backup-")
    assert shop.json("verify", f"--backup-dir={bundle}")["status"] == "valid"


_WRAPPER = """\
#!/bin/bash
set -euo pipefail

BACKUP_DIR=$(zkbackup backup \\
    --zk-data-dir=@DATA@/version-2 \\
    --zk-log-dir=@LOGS@/version-2 \\
    --output-dir=@BACKUPS@ \\
    --zk-host=@HOST@ \\
    --format=json | jq -r '.backup_dir')

echo "Uploading to remote storage..."
aws s3 sync "$BACKUP_DIR" "s3://my-backups/zookeeper/$(basename $BACKUP_DIR)"

curl -X POST @SERVICE@/api/backups \\
    -H "Content-Type: application/json" \\
    -d "{
        \\"type\\": \\"zookeeper\\",
        \\"backup_id\\": \\"$(basename $BACKUP_DIR)\\",
        \\"location\\": \\"s3://my-backups/zookeeper/$(basename $BACKUP_DIR)\\",
        \\"metadata\\": $(cat $BACKUP_DIR/metadata/backup_info.json)
    }"

zkbackup prune --keep-days=3 --force

echo "Backup completed: $(basename $BACKUP_DIR)"
"""


class _Service(HTTPServer):
    """A backup service that keeps what is posted to it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posted: list[tuple[str, str, bytes]] = []


class _Handler(BaseHTTPRequestHandler):
    server: _Service

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posted.append((self.path, self.headers["Content-Type"], body))
        self.send_response(201)
        self.end_headers()

    def log_message(self, *_words: object) -> None:
        """Not on stderr."""


@pytest.fixture
def service() -> Iterator[_Service]:
    with _Service() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_the_wrapper_script_of_the_design(shop: Served, service: _Service) -> None:
    """Only its paths and addresses are replaced."""
    replaced = {
        "@DATA@": str(shop.server.data_dir), "@LOGS@": str(shop.server.log_dir), "@BACKUPS@": str(shop.base),
        "@HOST@": shop.server.client, "@SERVICE@": f"http://127.0.0.1:{service.server_port}",
    }  # fmt: skip
    script = _WRAPPER
    for mark, value in replaced.items():
        script = script.replace(mark, value)
    put_programs(shop.home / "bin")
    with seaweed(shop.home) as s3:
        s3.make_bucket("my-backups")
        env = clean_environment(
            shop.home, S3_ENDPOINT=s3.endpoint, ZKBACKUP_BACKUP_BASE_DIR=str(shop.base),
            **{name: os.environ[name] for name in os.environ if name.startswith("AWS_")},
        )  # fmt: skip
        env["PATH"] = f"{shop.home / 'bin'}{os.pathsep}{env['PATH']}"
        done = subprocess.run(
            ["bash", "-c", script], env=env, cwd=shop.home, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        client = s3.client()
        listed = client.list_objects_v2(Bucket="my-backups", Prefix="zookeeper/")["Contents"]
        client.close()
    (bundle,) = shop.base.iterdir()
    assert f"Backup completed: {bundle.name}" in done.stdout
    local = {f"zookeeper/{p.relative_to(shop.base)}": p.stat().st_size for p in bundle.rglob("*") if p.is_file()}
    assert {each["Key"]: each["Size"] for each in listed} == local
    ((path, kind, body),) = service.posted
    said = json.loads(body)
    assert (path, kind, said["type"], said["backup_id"]) == (
        "/api/backups",
        "application/json",
        "zookeeper",
        bundle.name,
    )
    assert said["metadata"] == json.loads((bundle / "metadata" / "backup_info.json").read_text())
