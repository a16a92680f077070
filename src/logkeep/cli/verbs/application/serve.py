"""`logkeep app serve`: the HTTP interface to backups of one application."""

import threading
from pathlib import Path

import msgspec

from logkeep.application.client_config import client_config
from logkeep.application.http.server import ServingOptions, check_options, serve
from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.verbs.application.backup import data_directory, running_application
from logkeep.cli.verbs.application.declarations import SERVE
from logkeep.cli.wiring import opened_repository
from logkeep.config.options import (
    ALLOW_RESTORE,
    APP_DATA,
    BOOTSTRAP_SERVERS,
    CLIENT_CONFIG,
    LEASE_TTL,
    LISTEN,
    QUIET,
    SERVED_NAMES,
    TLS_CERTIFICATE,
    TLS_KEY,
    TOKEN_FILE,
)
from logkeep.errors import EngineUnavailable, UsageError


class ServeReport(msgspec.Struct, frozen=True, kw_only=True):
    application: str
    url: str


@verb(SERVE, report=ServeReport, text=lambda report, look: look.text(f"{report.url} has ended"))
def serve_application(run: Run, name: str) -> ServeReport:
    try:
        from logkeep.application.http.operations import ServedApplication  # noqa: PLC0415
        from logkeep.application.http.routes import http_application  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise EngineUnavailable("starlette is not installed", remedy="pip install 'logkeep[http]'") from error
    options, place = _options(run), opened_repository(run).place(name)
    check_options(options)
    _check_application(run)

    served = ServedApplication(
        name,
        place,
        lambda: running_application(run, name),
        run.clock,
        run.token,
        threading.Event().wait,
        run[LEASE_TTL],
        data_directory(run) if run[ALLOW_RESTORE] else None,
    )

    def serving(url: str) -> None:
        if not run[QUIET]:
            run.console.note(f"serving {name} at {url}; the token is in {options.token_file}")

    return ServeReport(application=name, url=serve(http_application([served]), options, serving))


def _check_application(run: Run) -> None:
    """What a request would find out later. Raises UsageError."""
    servers = run[BOOTSTRAP_SERVERS]
    if run[APP_DATA] is not None or servers is None:
        data_directory(run)
    elif run[ALLOW_RESTORE]:
        remedy = "name --data, or restore a log on Kafka with `logkeep app restore`"
        raise UsageError("a request can only restore a data directory", subject="--allow-restore", remedy=remedy)
    else:
        client_config(servers, run[CLIENT_CONFIG])


def _options(run: Run) -> ServingOptions:
    host, _, port = run[LISTEN].rpartition(":")
    if not host or not port.isdecimal() or len(port) > 5 or int(port) >= 1 << 16:
        raise UsageError(f"{run[LISTEN]!r} is not an address", remedy="write --listen 127.0.0.1:8470")
    return ServingOptions(
        host.strip("[]"),
        int(port),
        Path(run[TOKEN_FILE]),
        run[TLS_CERTIFICATE],
        run[TLS_KEY],
        run[SERVED_NAMES],
    )
