"""A ZooKeeper server, standalone or as a member of an ensemble, from Maven coordinates.

Every supported version starts in well under a second. It listens on 127.0.0.1 only, answers all four-letter words,
supports nodes with a time to live, and has a super user that can read the whole tree whatever its ACLs are.
"""

import base64
import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from logkeep.embedded.ports import free_ports
from logkeep.embedded.process import ServerProcess, java_command
from logkeep.embedded.server import LOGGING_JARS, READY_S, EmbeddedServer
from logkeep.engine.spark.jvm.jars import resolve_jars, spark_home, spark_jars
from logkeep.engine.spark.private_files import make_private
from logkeep.errors import ClusterUnreachable
from logkeep.zookeeper.server.four_letter import four_letter, parse_srvr

RELEASES = ("3.4.14", "3.5.10", "3.6.4", "3.7.2", "3.8.4", "3.9.5")
"""The last of each line that is supported."""
_ASK_S = 2.0
_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_OF_SPARK = ("metrics-core-*.jar", "snappy-java-*.jar", "commons-cli-*.jar")
"""Jars that ZooKeeper needs but does not declare as dependencies."""
JETTY = ("org.eclipse.jetty:jetty-server:9.4.57.v20241219", "org.eclipse.jetty:jetty-servlet:9.4.57.v20241219")
_JACKSON = ("jackson-core-2*.jar", "jackson-databind-*.jar", "jackson-annotations-*.jar")


@dataclass(frozen=True)
class ZooKeeperRelease:
    """A version of ZooKeeper and where its jars come from."""

    version: str = RELEASES[-1]

    @property
    def line(self) -> tuple[int, int]:
        """`(3, 9)` of 3.9.5: the file formats are the same within a line."""
        major, minor = self.version.split(".")[:2]
        return int(major), int(minor)

    @property
    def coordinates(self) -> tuple[str, ...]:
        return (f"org.apache.zookeeper:zookeeper:{self.version}",)

    def class_path(self, cache: Path, *, admin: bool = False) -> list[Path]:
        """Spark's logging jars come first: they fit each other. Each version is resolved alone, or Ivy evicts one."""
        path = [*spark_jars(*LOGGING_JARS), *self._own_jars(cache), *spark_jars(*_OF_SPARK)]
        return [*path, *resolve_jars(JETTY, cache), *spark_jars(*_JACKSON)] if admin else path

    def _own_jars(self, cache: Path) -> list[Path]:
        """The version that PySpark contains needs no download; Apache's client needs netty."""
        if (spark_home() / "jars" / f"zookeeper-{self.version}.jar").exists():
            return spark_jars(*(f"zookeeper{part}-{self.version}.jar" for part in ("", "-jute")), "netty-*.jar")
        return resolve_jars(self.coordinates, cache)


class EmbeddedZooKeeper(EmbeddedServer):
    """`with EmbeddedZooKeeper(directory, cache) as server:` starts a server on what its directories hold."""

    def __init__(
        self,
        directory: Path,
        cache: Path,
        *,
        release: ZooKeeperRelease | None = None,
        settings: Mapping[str, str] | None = None,
        data_dir: Path | None = None,
        log_dir: Path | None = None,
        my_id: int | None = None,
        admin: bool = False,
        java_options: Sequence[str] = (),
        password: str | None = None,
        ports: Callable[[int], list[int]] = free_ports,
    ) -> None:
        """`settings` are lines of zoo.cfg and win over ours. `data_dir` holds `version-2`, and so does `log_dir`, which
        is the same unless it is named. `my_id` makes it a member of an ensemble, `admin` starts the AdminServer."""
        super().__init__(directory, cache)
        self.release = release or ZooKeeperRelease()
        self.data_dir = data_dir or directory / "data"
        self.log_dir = log_dir or self.data_dir
        self.my_id = my_id
        self.port, self.admin_port = ports(2)
        self.client = f"127.0.0.1:{self.port}"
        self.settings = dict(settings or {})
        self.password = password or secrets.token_hex(16)
        """Password of the user `super`."""
        self._admin, self._java_options = admin, tuple(java_options)

    @property
    def config(self) -> Path:
        return self.directory / "zoo.cfg"

    @property
    def admin_url(self) -> str:
        return f"http://127.0.0.1:{self.admin_port}/commands"

    def start(self) -> None:
        """Start, and return when it serves; raises `ServerFailed`."""
        self.launch()
        self.wait_until_serving()

    def launch(self) -> None:
        """Start without waiting: a member does not serve before a majority runs."""
        self._write_files()
        self._server = ServerProcess("ZooKeeper", self.command(_MAIN, [str(self.config)]), self.log, cwd=self.directory)
        self._server.start()

    def wait_until_serving(self) -> None:
        if self._server is not None:
            self._server.wait_until(self.serves, READY_S)

    def serves(self) -> bool:
        try:
            return parse_srvr(four_letter(self.client, "srvr", _ASK_S)) is not None
        except ClusterUnreachable:
            return False

    def properties(self) -> dict[str, str]:
        """All of zoo.cfg."""
        own = {
            "dataDir": str(self.data_dir),
            "dataLogDir": str(self.log_dir),
            "clientPort": str(self.port),
            "clientPortAddress": "127.0.0.1",
            "tickTime": "500",
            "maxClientCnxns": "0",
            "4lw.commands.whitelist": "*",
            "extendedTypesEnabled": "true",
            "DigestAuthenticationProvider.superDigest": digest_id("super", self.password),
            "admin.enableServer": "true" if self._admin else "false",
            "admin.serverAddress": "127.0.0.1",
            "admin.serverPort": str(self.admin_port),
        }
        return own | self.settings

    def command(self, main_class: str, arguments: Sequence[str]) -> list[str]:
        """The command line of a Java program of this release, also of the server itself."""
        options = [
            *self.jvm_options(),
            "-Dzookeeper.jmx.log4j.disable=true",
            *self._java_options,
        ]
        path = self.release.class_path(self._cache, admin=self._admin)
        return java_command(self._cache, path, main_class, arguments, options)

    def _write_files(self) -> None:
        make_private(self.directory)
        for needed in (self.data_dir, self.log_dir):
            needed.mkdir(parents=True, exist_ok=True)
        self.write_logging()
        if self.my_id is not None:
            (self.data_dir / "myid").write_text(f"{self.my_id}\n")
        if not self._is_rewritten():
            self.config.write_text("".join(f"{key}={value}\n" for key, value in self.properties().items()))

    def _is_rewritten(self) -> bool:
        """A member since 3.5 writes the ensemble to another file and names it here: then it owns both files."""
        return self.config.exists() and "dynamicConfigFile=" in self.config.read_text()


def digest_id(user: str, password: str) -> str:
    """The id of a user in an ACL of the scheme `digest`, which is SHA-1."""
    hashed = hashlib.sha1(f"{user}:{password}".encode(), usedforsecurity=False).digest()
    return f"{user}:{base64.b64encode(hashed).decode()}"
