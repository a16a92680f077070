"""Starts an HTTP server: its address, its token file, TLS, limits."""

import ipaddress
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from logkeep.application.http_guard import AsgiApp, Guard
from logkeep.errors import ConfigError, EngineUnavailable, UsageError
from logkeep.model.shell_words import shell_word

_MODE = 0o600
_MOST_CONNECTIONS = 64
_IDLE_S = 30
_END_S = 5
"""How long requests may go on after a signal."""


@dataclass(frozen=True)
class ServingOptions:
    host: str
    port: int
    token_file: Path
    certificate: Path | None = None
    key: Path | None = None
    names: tuple[str, ...] = ()
    """Further host names under which clients reach it."""

    @property
    def hosts(self) -> frozenset[str]:
        own = ("localhost", "127.0.0.1", "[::1]") if is_loopback(self.host) else ()
        own = (*own, _in_url(self.host))
        named = (name.lower() for name in self.names)
        return frozenset(
            {f"{name}:{self.port}" for name in own} | {host for n in named for host in (n, f"{n}:{self.port}")}
        )

    @property
    def url(self) -> str:
        return f"{'https' if self.certificate else 'http'}://{_in_url(self.host)}:{self.port}"


def check_options(options: ServingOptions) -> None:
    """Raises UsageError: other addresses than loopback need TLS."""
    if (options.certificate is None) != (options.key is None):
        raise UsageError("a certificate and its key belong together", remedy="give --tls-certificate and --tls-key")
    if options.certificate is None and not is_loopback(options.host):
        raise UsageError(
            f"{options.host} is not a loopback address: the token would be sent in clear",
            remedy="give --tls-certificate and --tls-key, or serve 127.0.0.1 behind a proxy with TLS",
        )


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_token(path: Path) -> str:
    """The token; a new one, in a file that only its owner can read, if there is none. Raises ConfigError."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _MODE)
    except FileExistsError:
        return _known_token(path)
    with os.fdopen(handle, "w") as file:
        token = secrets.token_urlsafe(32)
        file.write(token + "\n")
        file.flush()
        os.fsync(handle)
    return token


def _known_token(path: Path) -> str:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(handle) as file:
        found = os.fstat(handle)
        if found.st_mode & 0o077 or found.st_uid not in {0, os.geteuid()}:
            raise ConfigError(
                "other users can read or change it",
                subject=str(path),
                remedy=f"run `chmod 600 {shell_word(path)}`, or remove it",
            )
        token = file.read(1024).strip()
    if not token:
        raise ConfigError("it is empty", subject=str(path), remedy="remove it: the next start makes a new token")
    return token


def serve(app: AsgiApp, options: ServingOptions) -> None:
    """Until SIGTERM or SIGINT. Raises UsageError, or EngineUnavailable if the extra `http` is not installed."""
    check_options(options)
    try:
        import uvicorn  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise EngineUnavailable("uvicorn is not installed", remedy="pip install 'logkeep[http]'") from error
    guarded = Guard(app, options.hosts, read_token(options.token_file))
    uvicorn.run(
        guarded,
        host=options.host,
        port=options.port,
        ssl_certfile=options.certificate,
        ssl_keyfile=options.key,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=_END_S,
        lifespan="off",
    )


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
