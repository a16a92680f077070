"""Opens a socket to one broker, with TLS if the settings say so. Every failure is an error of `errors`."""

import socket
import ssl

from logkeep.errors import ClusterUnreachable
from logkeep.kafka.client.listener import without_tls
from logkeep.kafka.client.security.tls import answers_with_tls, explain_tls
from logkeep.kafka.client.settings import ClientSettings, Endpoint

_TLS_REMEDY = "is this the port of a TLS listener? Otherwise check the network; the run can be repeated"


def dial(endpoint: Endpoint, settings: ClientSettings, context: ssl.SSLContext | None) -> socket.socket:
    """Connect and, with a `context`, encrypt and verify.

    Raises `ClusterUnreachable`, `TlsFailed`, or `ProtocolMismatch` for an answer in plain text.
    """
    raw = _connect(endpoint, settings)
    if context is None:
        return raw
    try:
        return context.wrap_socket(raw, server_hostname=endpoint.host)
    except ssl.SSLError as error:
        raw.close()
        if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            raise _tls_cut(endpoint) from error
        if not answers_with_tls(error):
            raise without_tls(str(endpoint), settings.protocol) from error
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


def _connect(endpoint: Endpoint, settings: ClientSettings) -> socket.socket:
    """A connection to the first address of the host that accepts it."""
    try:
        addresses = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:  # ValueError: brokers can report names that are no host names
        why = error.strerror if isinstance(error, OSError) else "not a host name"
        raise ClusterUnreachable(f"the host name cannot be resolved: {why}", subject=str(endpoint)) from error
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
    raise ClusterUnreachable(f"no connection: {error_text(last)}", subject=str(endpoint)) from last


def _tune(made: socket.socket, settings: ClientSettings) -> None:
    """Set options before connecting: the receive buffer decides the window that the handshake offers."""
    made.settimeout(settings.connect_timeout_s)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, size in (
        (socket.SO_RCVBUF, settings.receive_buffer_bytes),
        (socket.SO_SNDBUF, settings.send_buffer_bytes),
    ):
        if size > 0:
            made.setsockopt(socket.SOL_SOCKET, option, size)


def error_text(error: OSError | None) -> str:
    """An operating system error in a few words."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return (error.strerror or str(error)).lower() if error else "the host has no address"
