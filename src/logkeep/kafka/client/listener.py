"""What a server at an address speaks, compared with this client's security.protocol: names and first bytes. Pure."""

from typing import Final

from logkeep.errors import ProtocolMismatch
from logkeep.kafka.client.settings import Protocol

TLS: Final = "SSL or SASL_SSL"
"""A listener with TLS, of which nothing more is known."""
_FIRST_BYTES: Final = (
    (b"HTTP", "an HTTP server"),
    (b"\x15\x03", TLS),
    (b"\x16\x03", TLS),
    (b"SSH-", "an SSH server"),
    (b"220 ", "a mail or file server"),
)
_NOT_KAFKA = "the server does not speak Kafka's protocol"
_PROPERTY = "security.protocol in the file of --command-config"


def protocol_of(*, tls: bool, sasl: bool) -> Protocol:
    """Kafka's name of a listener's security."""
    if tls:
        return "SASL_SSL" if sasl else "SSL"
    return "SASL_PLAINTEXT" if sasl else "PLAINTEXT"


def other_protocol(where: str, ours: Protocol, theirs: str, mechanisms: tuple[str, ...] = ()) -> ProtocolMismatch:
    """The error that names both sides. `theirs` may be several names."""
    offered = f" (it offers {', '.join(mechanisms)})" if mechanisms else ""
    return ProtocolMismatch(
        f"the listener is {theirs}{offered}, but this client uses {ours}",
        subject=where,
        remedy=_weaker_remedy(ours, theirs) if _weaker(theirs, ours) else f"set {_PROPERTY} to {theirs}",
    )


def unlike_kafka(where: str, first_bytes: bytes, ours: Protocol, found: str = "") -> ProtocolMismatch:
    """The error for an answer that no Kafka listener of this kind gives. `found` is shown if nothing else is known."""
    theirs = next((name for start, name in _FIRST_BYTES if first_bytes.startswith(start)), "")
    if theirs == TLS:
        return other_protocol(where, ours, TLS)
    return other_server(where, theirs, ours) if theirs else _mismatch(where, f"{_NOT_KAFKA}{found}", ours)


def other_server(where: str, theirs: str, ours: Protocol) -> ProtocolMismatch:
    return _mismatch(where, f"{theirs} answers", ours)


def without_tls(where: str, ours: Protocol) -> ProtocolMismatch:
    """The error for a server that answers a TLS handshake in plain text. A Kafka listener closes the connection."""
    return _mismatch(where, "a server without TLS answers", ours)


def _mismatch(where: str, what: str, ours: Protocol) -> ProtocolMismatch:
    listener = f"{'an' if ours == 'SSL' else 'a'} {ours} listener of Kafka"
    return ProtocolMismatch(f"{what}, but this client expects {listener}", subject=where)


def _weaker(theirs: str, ours: Protocol) -> bool:
    """Whether the listener lacks encryption or authentication that this client is set to use."""
    return ("SSL" in ours and "SSL" not in theirs) or ("SASL" in ours and "SASL" not in theirs)


def _weaker_remedy(ours: Protocol, theirs: str) -> str:
    return (
        f"name the port of the {ours} listener; only if a connection without its protection is intended, set "
        f"{_PROPERTY} to {theirs}"
    )
