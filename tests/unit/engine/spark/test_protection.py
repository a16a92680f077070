"""Which sessions are authenticated, and what is refused."""

import pytest

from logkeep.engine.spark.protection import makes_own_secret, protection, unauthenticated, unauthenticated_finding
from logkeep.errors import UsageError

AUTHENTICATED = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.authenticate.enableSaslEncryption": "false",
    "spark.executorEnv.PYTHONSAFEPATH": "1",
}
STANDALONE = "spark://host:7077"


@pytest.mark.parametrize("master", ("local", "local[*]", "local[2,4]"))
@pytest.mark.parametrize("secret_named", (True, False))
def test_a_local_session_is_always_protected(master: str, secret_named: bool) -> None:
    asked = {"spark.authenticate": "true", "spark.network.crypto.cipher": "AES/GCM/NoPadding"}
    fixed = protection(master, {"spark.executor.memory": "1g"} | asked, secret_named=secret_named)
    assert fixed == AUTHENTICATED | {"spark.network.crypto.saslFallback": "false"}


@pytest.mark.parametrize("master", ("foo", "local[", "local[0]", "local[x]", "spark://host", "Yarn", "mesos://h:1", ""))
@pytest.mark.parametrize("secret_named", (True, False))
def test_an_unknown_master(master: str, secret_named: bool) -> None:
    with pytest.raises(UsageError, match="unknown master") as caught:
        protection(master, {}, secret_named=secret_named)
    assert "spark://HOST:PORT" in caught.value.remedy


@pytest.mark.parametrize(
    ("key", "value"),
    (
        ("spark.authenticate", "false"),
        ("spark.authenticate", "FALSE"),
        ("spark.network.crypto.enabled", "false"),
        ("spark.network.crypto.saslFallback", "true"),
        ("spark.authenticate.enableSaslEncryption", "true"),
        ("spark.authenticate.secretBitLength", "8"),
        ("spark.ssl.rpc.enabled", "true"),
        ("spark.executorEnv.PYTHONSAFEPATH", "0"),
    ),
)
def test_a_local_session_cannot_be_weakened(key: str, value: str) -> None:
    with pytest.raises(UsageError) as caught:
        protection("local[2]", {key: value}, secret_named=False)
    assert (caught.value.exit_code, caught.value.remedy) == (40, f"leave {key} out")
    assert f"{key} is set to {value}" in caught.value.what


@pytest.mark.parametrize("master", (STANDALONE, "local-cluster[2,1,1024]"))
def test_a_standalone_cluster_needs_its_secret(master: str) -> None:
    with pytest.raises(UsageError, match="would not be authenticated") as caught:
        protection(master, {}, secret_named=False)
    assert caught.value.exit_code == 40
    assert "--spark-secret-file" in caught.value.remedy
    assert "spark.authenticate=false" in caught.value.remedy
    fixed = protection(master, {"spark.authenticate": "true"}, secret_named=True)
    assert AUTHENTICATED.items() <= fixed.items()


@pytest.mark.parametrize("master", ("yarn", "k8s://https://host:6443"))
def test_masters_that_make_a_secret_need_none(master: str) -> None:
    assert makes_own_secret(master)
    fixed = protection(master, {"spark.network.crypto.cipher": "AES/GCM/NoPadding"}, secret_named=False)
    assert AUTHENTICATED.items() <= fixed.items()
    assert "spark.authenticate.secret" not in fixed
    assert "spark.network.crypto.cipher" not in fixed


def test_a_cluster_without_authentication_is_a_finding() -> None:
    asked = {"spark.authenticate": "false"}
    assert unauthenticated(STANDALONE, asked)
    assert not unauthenticated(STANDALONE, {})
    assert not unauthenticated("local[2]", asked)
    assert protection(STANDALONE, asked, secret_named=False)["spark.authenticate"] == "false"
    assert unauthenticated_finding(STANDALONE).code == "spark-unauthenticated"
    with pytest.raises(UsageError, match="a secret is named"):
        protection(STANDALONE, asked, secret_named=True)
