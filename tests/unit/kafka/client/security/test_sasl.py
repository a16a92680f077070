"""A broker that cannot prove that it knows the password is refused."""

import base64
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from logkeep.errors import AuthenticationFailed
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.security.sasl import authenticate
from logkeep.kafka.client.settings import FileSecret, Sasl
from tests.support.kafka.hostile_broker import (
    API_VERSIONS,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    BrokerRequest,
    authenticated,
    hostile_broker,
)

PASSWORD = "hush-4711"


class _Impostor:
    """Takes every proof, and signs with nothing."""

    def __init__(self, last: bytes) -> None:
        self._last = last
        self.asked: list[str] = []

    def __call__(self, api: str, fields: Mapping[str, Any]) -> Any:
        self.asked.append(api)
        if api == "SaslHandshake":
            return SimpleNamespace(error_code=0, mechanisms=["SCRAM-SHA-256"])
        said: bytes = fields["auth_bytes"]
        nonce = said.rpartition(b"r=")[2]
        first = b"r=" + nonce + b"x,s=" + base64.b64encode(b"salt") + b",i=4096"
        body = first if said.startswith(b"n,,") else self._last
        return SimpleNamespace(error_code=0, error_message=None, auth_bytes=body, session_lifetime_ms=0)


def _sasl(tmp_path: Path) -> Sasl:
    path = tmp_path / "password"
    path.touch(mode=0o600)
    path.write_text(PASSWORD)
    return Sasl("SCRAM-SHA-256", "alice", FileSecret(path))


@pytest.mark.parametrize("iterations", [b"1", b"4095", b"0", b"-4096", b"4096,i=1"])
def test_few_iterations_are_refused_before_a_proof_is_sent(tmp_path: Path, iterations: bytes) -> None:
    """A server between us and the broker asks for one iteration, and would find the password offline."""

    def answer(request: BrokerRequest) -> bytes | None:
        if request.key != SASL_AUTHENTICATE:
            return None
        nonce = request.rest.rpartition(b"r=")[2].rstrip(b"\0")
        return authenticated(request.correlation, b"r=" + nonce + b"x,s=c2FsdA==,i=" + iterations)

    few = pytest.raises(AuthenticationFailed, match="iterations of SCRAM, fewer than 4096")
    with hostile_broker(answer) as broker, few as caught:
        Connection.open(broker.endpoint, broker.settings(_sasl(tmp_path)))
    assert [request.key for request in broker.requests] == [API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE]
    assert "iterations=4096" in caught.value.remedy


def test_a_number_of_iterations_that_is_none_is_refused_too(tmp_path: Path) -> None:
    def answer(request: BrokerRequest) -> bytes | None:
        said = request.rest.rpartition(b"r=")[2].rstrip(b"\0")
        first = b"r=" + said + b"x,s=c2FsdA==,i=many"
        return authenticated(request.correlation, first) if request.key == SASL_AUTHENTICATE else None

    with hostile_broker(answer) as broker, pytest.raises(AuthenticationFailed, match="could not prove"):
        Connection.open(broker.endpoint, broker.settings(_sasl(tmp_path)))
    assert len(broker.requests) == 3


@pytest.mark.parametrize("last", (b"v=" + base64.b64encode(bytes(32)), b"e=other-error", b"", b"\xff"))
def test_an_impostor(tmp_path: Path, last: bytes) -> None:
    broker = _Impostor(last)
    with pytest.raises(AuthenticationFailed, match="could not prove") as caught:
        authenticate(broker, _sasl(tmp_path), "somewhere:9092", tls=False)
    assert broker.asked == ["SaslHandshake", "SaslAuthenticate", "SaslAuthenticate"]
    assert PASSWORD not in f"{caught.value!r}{caught.value}"
