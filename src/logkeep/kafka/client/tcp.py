"""A socket to one broker, with TLS if the settings want it. Every failure is one of our errors."""

import socket
import ssl

from logkeep.errors import ClusterUnreachable
from logkeep.kafka.client.settings import ClientSettings, Endpoint
from logkeep.kafka.client.tls import explain_tls

_TLS_REMEDY = "is this the port of a TLS listener? Otherwise check the network; the run can be repeated"


def dial(endpoint: Endpoint, settings: ClientSettings, context: ssl.SSLContext | None) -> socket.socket:
    """Connected and, with a `context`, encrypted and verified. Raises `ClusterUnreachable` or `TlsFailed`."""
    raw = _connected(endpoint, settings)
    if context is None:
        return raw
    try:
        return context.wrap_socket(raw, server_hostname=endpoint.host)
    except ssl.SSLError as error:
        raw.close()
        if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            raise _tls_cut(endpoint) from error
        raise explain_tls(error, str(endpoint)) from error
    except OSError as error:
        raw.close()
        raise _tls_cut(endpoint) from error
    except BaseException:
        raw.close()
        raise


def _tls_cut(endpoint: Endpoint) -> ClusterUnreachable:
    return ClusterUnreachable(
        "the connection ended during the TLS handshake", subject=str(endpoint), remedy=_TLS_REMEDY
    )


def _connected(endpoint: Endpoint, settings: ClientSettings) -> socket.socket:
    """The first address of the host that takes the connection."""
    try:
        addresses = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ClusterUnreachable(
            f"the host name cannot be resolved: {error.strerror}", subject=str(endpoint)
        ) from error
    last: OSError | None = None
    for family, kind, number, _, address in addresses:
        made = socket.socket(family, kind, number)
        try:
            _tune(made, settings)
            made.connect(address)
            made.settimeout(settings.request_timeout_s)
        except OSError as error:
            made.close()
            last = error
        else:
            return made
    raise ClusterUnreachable(f"no connection: {told(last)}", subject=str(endpoint)) from last


def _tune(made: socket.socket, settings: ClientSettings) -> None:
    """Before connecting: the receive buffer decides the window that is offered in the handshake."""
    made.settimeout(settings.connect_timeout_s)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, size in (
        (socket.SO_RCVBUF, settings.receive_buffer_bytes),
        (socket.SO_SNDBUF, settings.send_buffer_bytes),
    ):
        if size > 0:
            made.setsockopt(socket.SOL_SOCKET, option, size)


def told(error: OSError | None) -> str:
    """An operating system error in a few words."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return (error.strerror or str(error)).lower() if error else "the host has no address"
