"""How to reach a cluster, as a frozen value without a secret in it.

`ClientSettings` is pickled to Spark workers. It holds *where* a secret is stored (a key of a properties file, a file, a
command), never the secret: each worker reads it there itself, from a file that only its owner can read.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from logkeep.errors import ConfigError
from logkeep.file_owners import OriginFile
from logkeep.model.host_names import is_host_name

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
StoreKind = Literal["PEM", "PKCS12"]
_PORT = re.compile(r"[0-9]{1,5}")
_HOST_PORT = "write host:port, or several with commas: kafka1:9092,kafka2:9092"


@dataclass(frozen=True, order=True)
class Endpoint:
    """Host and port of one listener."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class PropertySecret:
    """The value of one key of a properties file; `option` names an option inside a JAAS entry."""

    path: Path
    key: str
    option: str = ""


@dataclass(frozen=True)
class FileSecret:
    path: Path


@dataclass(frozen=True)
class CommandSecret:
    argv: tuple[str, ...]
    defined_in: OriginFile
    """The file that names the command, and whether others could change it when it was read."""


SecretPlace = PropertySecret | FileSecret | CommandSecret


@dataclass(frozen=True)
class Sasl:
    """Mechanism and user. `secret` is a password, or for OAUTHBEARER a token."""

    mechanism: Mechanism
    username: str
    secret: SecretPlace


@dataclass(frozen=True)
class TrustStore:
    """Certificate authorities: a file, or PEM text of a property. They are public; a PKCS12 file is not."""

    kind: StoreKind
    location: Path | None = None
    text: str = ""
    password: PropertySecret | None = None


@dataclass(frozen=True)
class KeyStore:
    """The client's certificate and key: a file, or PEM text in two properties (`chain` is public, `key` is not)."""

    kind: StoreKind
    location: Path | None = None
    chain: str = ""
    key: PropertySecret | None = None
    password: PropertySecret | None = None


@dataclass(frozen=True)
class ClientSettings:
    """Everything a connection needs; `notes` list properties without effect."""

    bootstrap: tuple[Endpoint, ...]
    protocol: Protocol = "PLAINTEXT"
    sasl: Sasl | None = None
    trust: TrustStore | None = None
    identity: KeyStore | None = None
    client_id: str = "logkeep"
    rack: str = ""
    connect_timeout_s: float = 10.0
    request_timeout_s: float = 30.0
    receive_buffer_bytes: int = -1
    """-1: the kernel adapts it, beyond what a process may request; measured as fast as any fixed size."""
    send_buffer_bytes: int = -1
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def tls(self) -> bool:
        return self.protocol in {"SSL", "SASL_SSL"}


def endpoints(text: str) -> tuple[Endpoint, ...]:
    """`host:port,host:port` as Kafka writes it, IPv6 in brackets. Raises `ConfigError`."""
    found = tuple(_endpoint(each.strip()) for each in text.split(",") if each.strip())
    if not found:
        raise ConfigError(
            "no server is named",
            subject="bootstrap.servers",
            remedy=_HOST_PORT,
        )
    return found


def _endpoint(text: str) -> Endpoint:
    plain = text.partition("://")[2] or text
    host, _, port = plain.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not is_host_name(host) or not _PORT.fullmatch(port) or not 0 < int(port) < 65536:
        raise ConfigError(
            f"{text!r} is not host:port",
            subject="bootstrap.servers",
            remedy=_HOST_PORT,
        )
    return Endpoint(host, int(port))
