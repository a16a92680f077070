"""Authentication and encryption of Spark's network connections: what a session must have, and what is refused. Pure.

Without authentication every local user, or every host of the network, reaches Java deserialisation in the driver. A
local session always has it. On a cluster the user may turn it off by name, and then the report says so.
"""

import re
from collections.abc import Mapping

from logkeep.engine.spark.settings import is_local
from logkeep.errors import UsageError
from logkeep.model.findings import Finding, Severity

SECRET_VARIABLE = "_SPARK_AUTH_SECRET"  # the name of a variable
"""Driver and executors read the secret from this environment variable before they read Spark's settings."""
_AUTHENTICATE = "spark.authenticate"
_NAMED_SECRET = {"spark.authenticate.secret": "in-the-environment"}
"""On a standalone cluster the driver demands this setting, and does not use its value where the variable is set."""
_ENCRYPTED = {
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",
    "spark.authenticate.enableSaslEncryption": "false",
}
_MASTER = re.compile(
    r"local(\[(\*|[1-9]\d*)(,[1-9]\d*)?\])?|local-cluster\[\d+,\d+,\d+\]|"
    r"spark://[^\s/,]+:\d+(,[^\s/,]+:\d+)*|yarn|k8s://\S+",
    re.ASCII,
)
_FIXED_PREFIXES = ("spark.authenticate", "spark.network.crypto", "spark.network.sasl", "spark.ssl.")
_CHOICES = ("spark.network.crypto.cipher", "spark.network.crypto.authEngineVersion")
"""Settings of the encryption that the user may choose."""
_SAFE_PATH = {"spark.executorEnv.PYTHONSAFEPATH": "1"}
"""Otherwise Python workers import modules from the directory that they start in."""


def protection(master: str, conf: Mapping[str, str], *, secret_named: bool) -> dict[str, str]:
    """Settings that win over the user's `conf`. Raises UsageError for what would weaken them, and a wrong master."""
    if not _MASTER.fullmatch(master):
        raise UsageError(
            f"unknown master {master!r}",
            subject="--master",
            remedy="use local, local[4], local[*], spark://HOST:PORT, yarn or k8s://URL",
        )
    _refuse_other(conf, _SAFE_PATH, "Spark's Python workers must not import from their working directory")
    if not is_local(master):
        return _cluster_protection(master, conf, secret_named=secret_named) | _SAFE_PATH
    fixed = {_AUTHENTICATE: "true"} | _ENCRYPTED
    _refuse_other(conf, fixed, "a Spark session on this machine is always authenticated and encrypted")
    return fixed | _SAFE_PATH


def unauthenticated(master: str, conf: Mapping[str, str]) -> bool:
    """Whether the user turned authentication off, on a cluster."""
    return not is_local(master) and conf.get(_AUTHENTICATE, "").lower() == "false"


def unauthenticated_finding(master: str) -> Finding:
    return Finding(
        code="spark-unauthenticated",
        severity=Severity.WARNING,
        where=master,
        what="Spark ran without authentication, as spark.authenticate=false asks: every host that reaches the driver "
        "or an executor can run code in it",
        remedy="give the cluster a secret and name it with engine.spark_secret",
    )


def makes_own_secret(master: str) -> bool:
    """Whether Spark makes a secret for each session and distributes it: not on a standalone cluster."""
    return is_local(master) or master == "yarn" or master.startswith("k8s://")


def _cluster_protection(master: str, conf: Mapping[str, str], *, secret_named: bool) -> dict[str, str]:
    if unauthenticated(master, conf):
        if secret_named:
            raise UsageError(
                "spark.authenticate is false, but a secret is named",
                subject=master,
                remedy="leave spark.authenticate or engine.spark_secret out",
            )
        return {_AUTHENTICATE: "false"}
    encrypted = {key: value for key, value in _cluster_encryption().items() if key not in conf}
    if makes_own_secret(master):
        return {_AUTHENTICATE: "true"} | encrypted
    if not secret_named:
        raise UsageError(
            "the session would not be authenticated: the secret of the cluster is not named",
            subject=master,
            remedy="pass --spark-secret-file PATH, or put `engine.spark_secret: file:PATH` in logkeep.yaml; a cluster "
            "without authentication needs --spark-conf spark.authenticate=false",
        )
    return {_AUTHENTICATE: "true"} | _NAMED_SECRET | encrypted


def _cluster_encryption() -> dict[str, str]:
    """Masters and workers may be configured for SASL only; then the driver must be able to answer them."""
    return _ENCRYPTED | {"spark.network.crypto.saslFallback": "true"}


def _refuse_other(given: Mapping[str, str], fixed: Mapping[str, str], what: str) -> None:
    for key, value in given.items():
        ours = fixed.get(key)
        related = ours is not None or (_AUTHENTICATE in fixed and key.startswith(_FIXED_PREFIXES))
        if related and key not in _CHOICES and value.lower() != ours:
            raise UsageError(f"{what}, but {key} is set to {value}", remedy=f"leave {key} out")
