"""Finds out what listens at an address, after a server closed the first connection of a client without a reason.

That is what a broker does to a client with another security.protocol. The probe opens connections of its own and sends
ApiVersions and SaslHandshake, which hold no credentials: first without TLS, then with it. Nothing else is ever sent
there, and the client never continues on what the probe found.
"""

import ssl
from contextlib import closing
from dataclasses import dataclass, replace

from logkeep.errors import ClusterUnreachable, LogkeepError, ProtocolMismatch, TlsFailed
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.listener import TLS, other_protocol, other_server, protocol_of
from logkeep.kafka.client.security.sasl import NOT_A_SASL_LISTENER
from logkeep.kafka.client.security.tls import answers_with_tls
from logkeep.kafka.client.settings import ClientSettings, Endpoint, Protocol
from logkeep.kafka.client.tcp import dial

_TIMEOUT_S = 5.0
_ANY_MECHANISM = {"mechanism": "PLAIN"}
_ZOOKEEPER_WORD = b"srvr"
_ZOOKEEPER_ANSWERS = (b"Zookeeper version", b"srvr is not executed")


@dataclass(frozen=True)
class FoundListener:
    """Kafka's name of the listener, or several that it may have, and its SASL mechanisms."""

    protocol: str
    mechanisms: tuple[str, ...] = ()


def closed_by_server(error: ClusterUnreachable) -> bool:
    """Whether a server was there and closed the connection: only then a probe can explain it."""
    return isinstance(
        error.__cause__,
        ConnectionAbortedError | ConnectionResetError | BrokenPipeError | ssl.SSLEOFError | ssl.SSLZeroReturnError,
    )


def find_mismatch(
    endpoint: Endpoint, settings: ClientSettings, context: ssl.SSLContext | None
) -> ProtocolMismatch | None:
    """Why the server closes our connections, if it uses another protocol; None if that is not so, or not known."""
    found = _without_tls(endpoint) or _with_tls(endpoint, settings, context)
    if found is None:
        return _zookeeper(endpoint, settings.protocol)
    if settings.protocol in found.protocol.split(" or "):
        return None
    return other_protocol(str(endpoint), settings.protocol, found.protocol, found.mechanisms)


def _without_tls(endpoint: Endpoint) -> FoundListener | None:
    try:
        return _ask(endpoint, _probing(ClientSettings(())), None)
    except LogkeepError:
        return None


def _with_tls(endpoint: Endpoint, settings: ClientSettings, context: ssl.SSLContext | None) -> FoundListener | None:
    """Probe with TLS: with the client's own certificates, or else with those of this machine. A server that refuses a
    certificate speaks TLS too."""
    try:
        probing = _probing(replace(settings, protocol="SSL", sasl=None))
        return _ask(endpoint, probing, context or ssl.create_default_context())
    except TlsFailed as error:
        return FoundListener(TLS) if answers_with_tls(error.__cause__) else None
    except LogkeepError:
        return None


def _probing(settings: ClientSettings) -> ClientSettings:
    usual = ClientSettings(())
    return replace(settings, client_id=usual.client_id, connect_timeout_s=_TIMEOUT_S, request_timeout_s=_TIMEOUT_S)


def _ask(endpoint: Endpoint, settings: ClientSettings, context: ssl.SSLContext | None) -> FoundListener:
    with Connection.open(endpoint, settings, context=context) as connection:
        reply = connection.call("SaslHandshake", _ANY_MECHANISM)
    sasl = reply.error_code != NOT_A_SASL_LISTENER
    offered = tuple(sorted(reply.mechanisms)) if sasl else ()
    return FoundListener(protocol_of(tls=context is not None, sasl=sasl), offered)


def _zookeeper(endpoint: Endpoint, ours: Protocol) -> ProtocolMismatch | None:
    try:
        with closing(dial(endpoint, _probing(ClientSettings(())), None)) as made:
            made.sendall(_ZOOKEEPER_WORD)
            answer = made.recv(64)
    except (LogkeepError, OSError):
        return None
    return other_server(str(endpoint), "a ZooKeeper server", ours) if answer.startswith(_ZOOKEEPER_ANSWERS) else None
