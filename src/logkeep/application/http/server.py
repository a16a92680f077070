"""Starts an HTTP server: its address, its token file, TLS, limits."""

import ipaddress
import os
import secrets
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from logkeep.application.http.guard import AsgiApp, Guard
from logkeep.errors import ConfigError, EngineUnavailable, UsageError
from logkeep.model.process_memory import hide_memory
from logkeep.model.shell_words import shell_word
from logkeep.secret_reading import refuse_readable_by_others

_MODE = 0o600
_MOST_CONNECTIONS = 64
_IDLE_S = 30
_END_S = 5
"""How long requests may continue after a signal."""


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
    """Raises UsageError: other addresses than loopback need TLS. Raises ConfigError for files that it cannot use."""
    if (options.certificate is None) != (options.key is None):
        raise UsageError("a certificate and its key belong together", remedy="give --tls-certificate and --tls-key")
    if options.certificate is None and not is_loopback(options.host):
        raise UsageError(
            f"{options.host} is not a loopback address: the token would be sent in clear",
            remedy="give --tls-certificate and --tls-key, or serve 127.0.0.1 behind a proxy with TLS",
        )
    if options.certificate is not None and options.key is not None:
        _check_pair(options.certificate, options.key)


def _check_pair(certificate: Path, key: Path) -> None:
    for path in (certificate, key):
        try:
            with path.open("rb") as file:
                mode = os.fstat(file.fileno()).st_mode
        except OSError as error:
            raise _unusable(path, error) from error
    refuse_readable_by_others(mode, key)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        remedy = "give a certificate and its key, both as PEM, the key without a passphrase"
        raise ConfigError(f"TLS cannot use it with {key} ({error})", subject=str(certificate), remedy=remedy) from error


def _unusable(path: Path, error: OSError) -> ConfigError:
    remedy = "check the path, and the rights of the user who starts the server"
    return ConfigError(f"it cannot be opened ({error.strerror})", subject=str(path), remedy=remedy)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_token(path: Path) -> str:
    """The token; a new one, in a file that only its owner can read, if there is none. Raises ConfigError."""
    hide_memory()
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _MODE)
    except FileExistsError:
        return _known_token(path)
    except OSError as error:
        raise _unusable(path, error) from error
    with os.fdopen(handle, "w") as file:
        token = secrets.token_urlsafe(32)
        file.write(token + "\n")
        file.flush()
        os.fsync(handle)
    return token


def _known_token(path: Path) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise _unusable(path, error) from error
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


def serve(app: AsgiApp, options: ServingOptions, serving: Callable[[str], None] = lambda _: None) -> str:
    """Until SIGTERM or SIGINT. `serving` is called with the URL once clients can connect. Returns the URL.

    Port 0 is a free port that the system chooses.

    Raises UsageError, ConfigError, or EngineUnavailable if the extra `http` is not installed.
    """
    check_options(options)
    try:
        import uvicorn  # noqa: PLC0415 - an extra

        from logkeep.application.http.connection import HttpConnection  # noqa: PLC0415
    except ImportError as error:
        raise EngineUnavailable("uvicorn is not installed", remedy="pip install 'logkeep[http]'") from error
    token, listener = read_token(options.token_file), _listening(options)
    options = replace(options, port=listener.getsockname()[1])
    config = uvicorn.Config(
        Guard(app, options.hosts, token),
        http=HttpConnection,
        ws="none",
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
    with listener, suppress(KeyboardInterrupt):
        serving(options.url)
        uvicorn.Server(config).run([listener])
    return options.url


def _listening(options: ServingOptions) -> socket.socket:
    """A socket of our own: uvicorn would log that the port is in use, and end as if nothing had happened."""
    try:
        family, *_, address = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address, family=family)
    except OSError as error:
        what = f"it cannot listen at {_in_url(options.host)}:{options.port} ({error.strerror})"
        raise UsageError(what, subject="--listen", remedy="choose another port, or end what uses it") from error


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
