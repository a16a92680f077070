"""The private key of a client certificate is on no disk but its own, whatever ends the process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from logkeep.kafka.client.properties import load_settings
from logkeep.kafka.client.security.tls import tls_context
from tests.support.servers.certificates import Identity, authority, signed

PASSWORD = "store-4711"
KILLED_WHILE_LOADING = """
import os, signal, ssl, sys
from pathlib import Path
from logkeep.kafka.client.properties import load_settings
from logkeep.kafka.client.security.tls import tls_context
ssl.SSLContext.load_cert_chain = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
tls_context(load_settings(Path(sys.argv[1])))
"""


def _properties(directory: Path, own: Identity, kind: str) -> Path:
    lines = ["bootstrap.servers=localhost:9093", "security.protocol=SSL"]
    if kind == "PKCS12":
        own.write_pkcs12(directory / "own.p12", PASSWORD)
        lines += [f"ssl.keystore.location={directory / 'own.p12'}", f"ssl.keystore.password={PASSWORD}"]
    else:
        key, chain = (text.replace("\n", "\\n") for text in (own.key_pem, own.pem))
        lines += [f"ssl.keystore.key={key}", f"ssl.keystore.certificate.chain={chain}"]
    path = directory / "client.properties"
    path.touch(mode=0o600)
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("kind", ["PKCS12", "PEM text"])
def test_a_key_is_not_on_disk_after_sigkill(tmp_path: Path, kind: str) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    path = _properties(tmp_path, signed(authority("ca"), "me"), kind)
    command = [sys.executable, "-c", KILLED_WHILE_LOADING, str(path)]
    done = subprocess.run(command, env={**os.environ, "TMPDIR": str(scratch)}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert list(scratch.rglob("*")) == []


@pytest.mark.parametrize("kind", ["PKCS12", "PEM text"])
def test_the_key_is_used_all_the_same(tmp_path: Path, kind: str) -> None:
    own = signed(authority("ca"), "me")
    before = len(list(Path("/proc/self/fd").iterdir()))
    tls_context(load_settings(_properties(tmp_path, own, kind)))
    assert len(list(Path("/proc/self/fd").iterdir())) == before
