"""A broker that cannot prove that it knows the password is refused."""

import base64
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from logkeep.errors import AuthenticationFailed
from logkeep.kafka.client.sasl import authenticate
from logkeep.kafka.client.settings import FileSecret, Sasl

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


@pytest.mark.parametrize("last", (b"v=" + base64.b64encode(bytes(32)), b"e=other-error", b"", b"\xff"))
def test_an_impostor(tmp_path: Path, last: bytes) -> None:
    path = tmp_path / "password"
    path.touch(mode=0o600)
    path.write_text(PASSWORD)
    broker = _Impostor(last)
    with pytest.raises(AuthenticationFailed, match="could not prove") as caught:
        authenticate(broker, Sasl("SCRAM-SHA-256", "alice", FileSecret(path)), "somewhere:9092")
    assert broker.asked == ["SaslHandshake", "SaslAuthenticate", "SaslAuthenticate"]
    assert PASSWORD not in f"{caught.value!r}{caught.value}"
