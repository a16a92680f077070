"""How to reach a schema registry: its URL, and a file with credentials and certificates.

The file is a Java properties file with the names of Confluent's clients: `basic.auth.user.info` (`user:password`),
`bearer.auth.token`, `ssl.truststore.*`, `ssl.keystore.*`. A key without a meaning here is refused, because a
registry that is reached in another way than the file says is not the one that was meant.
"""

import base64
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from logkeep.errors import ConfigError, UsageError
from logkeep.kafka.client.security.credentials import read_properties, reveal_place
from logkeep.kafka.client.security.keystores import key_store, trust_store
from logkeep.kafka.client.settings import ClientSettings, PropertySecret
from logkeep.model.host_names import http_address
from logkeep.model.secret import Secret

_BASIC: Final = "basic.auth.user.info"
_BEARER: Final = "bearer.auth.token"
_SOURCES: Final = {"basic.auth.credentials.source": "USER_INFO", "bearer.auth.credentials.source": "STATIC_TOKEN"}
_TLS = re.compile(
    r"ssl\.(truststore|keystore)\.(location|password|type|certificates|key|certificate\.chain)|ssl\.key\.password"
)
_AS_IN: Final = "write it as http://host:8081 or https://host:8081"
_MACHINE: Final = ClientSettings((), "SSL")
"""The certificate authorities of this machine."""


@dataclass(frozen=True)
class RegistryAddress:
    """Scheme, host, port and path of a registry's API."""

    scheme: str
    host: str
    port: int
    path: str = ""
    """Without a slash at the end."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


@dataclass(frozen=True)
class RegistrySettings:
    """`authorization` names a place, not a secret."""

    address: RegistryAddress
    authorization: PropertySecret | None = None
    tls: ClientSettings = _MACHINE
    timeout_s: float = 60.0
    """How long the registry may send nothing."""
    total_s: float = 600.0
    """How long one answer may take."""

    def header(self) -> Secret | None:
        """The value of the header `Authorization`. Raises ConfigError, without showing it."""
        if self.authorization is None:
            return None
        plain = reveal_place(self.authorization).reveal()
        if not plain.isascii() or not plain.isprintable():
            raise ConfigError("this credential cannot be sent over HTTP", subject=self.authorization.key)
        if self.authorization.key == _BEARER:
            return Secret(f"Bearer {plain}")
        return Secret("Basic " + base64.b64encode(plain.encode()).decode())


def registry_address(text: str) -> RegistryAddress:
    """Parse an address. Raises UsageError for an invalid one, and for one with a password in it."""
    parts = http_address(text)
    if parts is None:
        raise UsageError("not the address of a schema registry", subject=text.rpartition("@")[2], remedy=_AS_IN)
    host = parts.hostname or ""
    if "@" in parts.netloc:
        remedy = f"remove it from the address, and put {_BASIC} into the file of --registry-config"
        raise UsageError("an address must not contain a password", subject=host, remedy=remedy)
    if parts.query or parts.fragment or not re.fullmatch(r"[A-Za-z0-9._~/-]*", parts.path):
        raise UsageError("the address of a schema registry ends after its path", subject=host, remedy=_AS_IN)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return RegistryAddress(parts.scheme, host, port, parts.path.rstrip("/"))


def registry_settings(url: str, file: Path | None) -> RegistrySettings:
    """The settings from the URL and the file. Raises UsageError and ConfigError, never with a secret in it."""
    address = registry_address(url)
    if file is None:
        return RegistrySettings(address)
    path = file.absolute()
    found = dict(read_properties(path, private=True).found)
    for key in sorted(found):
        _refuse(key, found[key], path)
    if found.get(_BASIC) and found.get(_BEARER):
        raise ConfigError(f"{_BASIC} and {_BEARER} exclude each other", subject=str(path), remedy="leave one out")
    if found.get(_BASIC) and ":" not in found[_BASIC]:
        raise ConfigError(f"{_BASIC} must be user:password", subject=str(path), remedy="correct the file")
    credential = next((name for name in (_BASIC, _BEARER) if found.get(name)), "")
    tls = ClientSettings((), "SSL", trust=trust_store(found, path), identity=key_store(found, path))
    return RegistrySettings(address, PropertySecret(path, credential) if credential else None, tls)


def _refuse(key: str, value: str, path: Path) -> None:
    if key in {_BASIC, _BEARER} or _TLS.fullmatch(key):
        return
    if key in _SOURCES and value == _SOURCES[key]:
        return
    remedy = f"supported are {_BASIC}, {_BEARER}, ssl.truststore.* and ssl.keystore.*, without a prefix"
    raise ConfigError(f"{key} is not supported for a schema registry", subject=str(path), remedy=remedy)


def sent_in_clear(settings: RegistrySettings) -> bool:
    """Whether a password goes over a network without encryption."""
    local = settings.address.host in {"localhost", "127.0.0.1", "::1"}
    return settings.authorization is not None and settings.address.scheme == "http" and not local
