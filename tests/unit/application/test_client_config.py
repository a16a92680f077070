"""A properties file of librdkafka: who may change what it runs, who may read it, and what the client prints."""

import struct
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from logkeep.application.client_config import client_config
from logkeep.errors import ConfigError, UsageError
from tests.support.kafka.hostile_broker import (
    API_VERSIONS,
    SASL_AUTHENTICATE,
    BrokerRequest,
    framed,
    hostile_broker,
)
from tests.support.other_user import give_to_other

NOWHERE = "127.0.0.1:1"


def _file(directory: Path, text: str, mode: int = 0o600) -> Path:
    path = directory / "client.properties"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_library_in_a_file_of_another_user_is_not_loaded(tmp_path: Path) -> None:
    """In our own file librdkafka tries to load it: there is no such library."""
    path = _file(tmp_path, f"plugin.library.paths={tmp_path}/evil\n")
    with pytest.raises(UsageError, match=r"dlopen\(\) failed"):
        client_config(NOWHERE, path)
    give_to_other(path)
    with pytest.raises(ConfigError, match="others can change it"):
        client_config(NOWHERE, path)


@pytest.mark.parametrize("name", ["ssl.engine.location", "ssl.providers", "sasl.kerberos.kinit.cmd"])
def test_nor_is_other_code(tmp_path: Path, name: str) -> None:
    path = _file(tmp_path, f"{name}=evil\n")
    give_to_other(tmp_path)
    with pytest.raises(ConfigError, match="others can change it"):
        client_config(NOWHERE, path)


def test_a_file_of_another_user_without_code_is_used(tmp_path: Path) -> None:
    path = _file(tmp_path, "client.id=shop\n", 0o644)
    give_to_other(path)
    assert client_config(NOWHERE, path)["client.id"] == "shop"


@pytest.mark.parametrize("name", ["sasl.password", "ssl.key.password", "sasl.oauthbearer.client.secret"])
def test_a_secret_that_others_can_read_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="contains secrets and can be read by others"):
        client_config(NOWHERE, _file(tmp_path, f"{name}=hidden\n", 0o644))
    assert client_config(NOWHERE, _file(tmp_path, f"{name}=hidden\n"))[name] == "hidden"


def test_words_of_a_broker_do_not_reach_the_terminal(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """librdkafka would write them to its log, on the terminal, as the broker sent them."""
    words = b"go away\x1b]0;owned\x07\x1b[2K\nbackup completed"

    def answer(request: BrokerRequest) -> bytes | None:
        if request.key == API_VERSIONS:
            spoken = b"".join(struct.pack(">hhhx", *one) for one in ((18, 0, 3), (17, 1, 1), (36, 1, 1), (3, 9, 12)))
            return framed(request.correlation, struct.pack(">hB", 0, 5) + spoken + bytes(5))
        if request.key == SASL_AUTHENTICATE:
            return framed(request.correlation, struct.pack(">hh", 58, len(words)) + words + bytes(12))
        return None

    path = _file(
        tmp_path,
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.username=u\nsasl.password=p\n",
    )
    with hostile_broker(answer) as broker:
        client = AdminClient(client_config(f"127.0.0.1:{broker.port}", path))
        with pytest.raises(KafkaException):
            client.list_topics(timeout=2)
        assert SASL_AUTHENTICATE in {request.key for request in broker.requests}
    shown = capfd.readouterr()
    assert "owned" not in shown.out + shown.err
