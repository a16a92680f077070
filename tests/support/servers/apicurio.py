"""A real Apicurio registry, from what `make registry` fetched, for the tests that record its answers."""

import http.client
import os
from pathlib import Path
from typing import Self

from logkeep.embedded.ports import free_ports
from logkeep.embedded.process import ServerProcess
from tests.support.servers.server_archives import APICURIO

HOME = "LOGKEEP_REGISTRY_HOME"
_READY_S = 240.0
_OPTIONS = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class Apicurio:
    """In memory, or with its state in topics of a Kafka cluster."""

    def __init__(self, directory: Path, *, bootstrap: str = "", topics: str = "") -> None:
        self._home, self._directory = Path(os.environ[HOME]), directory
        (self._port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self._port}"
        self._environment = {"QUARKUS_HTTP_HOST": "127.0.0.1", "QUARKUS_HTTP_PORT": str(self._port)}
        self._environment["APICURIO_REST_DELETION_ARTIFACT_ENABLED"] = "true"
        if bootstrap:
            self._environment |= {
                "APICURIO_STORAGE_KIND": "kafkasql",
                "APICURIO_KAFKASQL_BOOTSTRAP_SERVERS": bootstrap,
                "APICURIO_KAFKASQL_TOPIC": f"{topics}-journal",
                "APICURIO_KAFKASQL_SNAPSHOTS_TOPIC": f"{topics}-snapshots",
                "APICURIO_EVENTS_KAFKA_TOPIC": f"{topics}-events",
            }
        self._server: ServerProcess | None = None

    def __enter__(self) -> Self:
        self._directory.mkdir(parents=True, exist_ok=True)
        java = next(self._home.glob("**/java-runtime/bin/java"))
        java.chmod(0o755)
        variables = [f"{name}={value}" for name, value in self._environment.items()]
        program = APICURIO.checked(self._home) / "quarkus-run.jar"
        command = ["env", *variables, str(java), *_OPTIONS, "-jar", str(program)]
        self._server = ServerProcess("Apicurio", command, self._directory / "log", cwd=self._directory).start()
        self._server.wait_until(self._answers, _READY_S)
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._server is not None:
            self._server.stop()

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            connection.request("GET", "/apis/registry/v3/system/info")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
