"""SASL handshake and authentication on a new connection.

The secret is read for this one exchange; no message and no `repr` ever holds it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from logkeep.errors import AuthenticationFailed
from logkeep.kafka.client import protocol
from logkeep.kafka.client.error_codes import OK, failure
from logkeep.kafka.client.listener import other_protocol, protocol_of
from logkeep.kafka.client.protocol import error_name
from logkeep.kafka.client.security.credentials import reveal_place
from logkeep.kafka.client.settings import Sasl
from logkeep.model.secret import Secret

_MOST_STEPS = 5
_NO_SUCH_MECHANISM = 33
NOT_A_SASL_LISTENER = 34
"""The answer of a PLAINTEXT or SSL listener to SaslHandshake."""
LEAST_ITERATIONS = 4096
"""Fewest SCRAM iterations, as in RFC 7677 and Kafka. With fewer, an eavesdropper finds the password by guessing."""
Call = Callable[[str, Mapping[str, Any]], Any]


class Exchange(Protocol):
    """The client's side of one mechanism."""

    def auth_bytes(self) -> bytes: ...
    def receive(self, auth_bytes: bytes) -> object: ...
    def is_done(self) -> bool: ...


class _Bearer:
    """OAUTHBEARER (RFC 7628). A refusal comes as JSON; the client acknowledges it with one byte and gets an error."""

    def __init__(self, token: Secret) -> None:
        self._token = token
        self._refused = False
        self._done = False

    def auth_bytes(self) -> bytes:
        return b"\x01" if self._refused else f"n,,\x01auth=Bearer {self._token.reveal()}\x01\x01".encode()

    def receive(self, auth_bytes: bytes) -> None:
        self._refused = bool(auth_bytes)
        self._done = not auth_bytes

    def is_done(self) -> bool:
        return self._done


class _Scram:
    """SCRAM (RFC 5802) that computes no proof for a server which asks for few iterations."""

    def __init__(self, inner: Exchange, where: str) -> None:
        self._inner, self._where = inner, where
        self._first = True

    def auth_bytes(self) -> bytes:
        return self._inner.auth_bytes()

    def receive(self, auth_bytes: bytes) -> None:
        if self._first:
            self._check_iterations(auth_bytes)
        self._first = False
        self._inner.receive(auth_bytes)

    def is_done(self) -> bool:
        return self._inner.is_done()

    def _check_iterations(self, server_first: bytes) -> None:
        """Reads the number as kafka-python does, so that both see the same one. Raises ValueError, KeyError."""
        iterations = int(dict(pair.split("=", 1) for pair in server_first.decode().split(","))["i"])
        if iterations < LEAST_ITERATIONS:
            raise AuthenticationFailed(
                f"the broker asks for {iterations} iterations of SCRAM, fewer than {LEAST_ITERATIONS}; "
                "nothing was sent that depends on the password",
                subject=self._where,
                remedy="set the password again with iterations=4096 or more (kafka-configs.sh --add-config); if it was "
                "set so, another server answers for the broker: use TLS",
            )


def authenticate(call: Call, sasl: Sasl, where: str, *, tls: bool) -> float:
    """Authenticate; returns seconds until the broker requires it again, 0 = never.

    Raises `AuthenticationFailed`, and `ProtocolMismatch` before the secret is read if the listener has no SASL.
    """
    reply = call("SaslHandshake", {"mechanism": sasl.mechanism})
    offered = ", ".join(sorted(reply.mechanisms)) or "none"
    if reply.error_code == _NO_SUCH_MECHANISM:
        raise AuthenticationFailed(
            f"the broker does not offer {sasl.mechanism}; it offers {offered}",
            subject=where,
            remedy="set sasl.mechanism to one that the broker offers",
        )
    if reply.error_code == NOT_A_SASL_LISTENER:
        raise other_protocol(where, protocol_of(tls=tls, sasl=True), protocol_of(tls=tls, sasl=False))
    if reply.error_code != OK:
        raise failure(reply.error_code, subject=where, doing="SaslHandshake")
    return _exchange_messages(call, _client_side(sasl, where), sasl, where, offered)


def _exchange_messages(call: Call, side: Exchange, sasl: Sasl, where: str, offered: str) -> float:
    lifetime_ms = 0
    for _ in range(_MOST_STEPS):
        reply = call("SaslAuthenticate", {"auth_bytes": side.auth_bytes()})
        if reply.error_code != OK:
            raise _refused(sasl, where, offered, reply.error_message or error_name(reply.error_code))
        try:
            side.receive(bytes(reply.auth_bytes or b""))
        except (ValueError, KeyError) as error:
            # A wrong server signature comes here: the server does not know the password either.
            raise _refused(sasl, where, offered, "the broker could not prove that it knows the password") from error
        lifetime_ms = reply.session_lifetime_ms
        if side.is_done():
            return float(lifetime_ms) / 1000
    raise _refused(sasl, where, offered, "the exchange did not end")


def _refused(sasl: Sasl, where: str, offered: str, why: str) -> AuthenticationFailed:
    who = f" for user {sasl.username!r}" if sasl.username else ""
    return AuthenticationFailed(f"{sasl.mechanism}{who} failed (the broker offers {offered}): {why}", subject=where)


def _client_side(sasl: Sasl, where: str) -> Exchange:
    secret = reveal_place(sasl.secret)
    if sasl.mechanism == "OAUTHBEARER":
        return _Bearer(secret)
    if sasl.mechanism == "PLAIN":
        made: Exchange = protocol.plain_mechanism(sasl.username, secret.reveal())
        return made
    return _Scram(protocol.scram_mechanism(sasl.mechanism, sasl.username, secret.reveal()), where)
