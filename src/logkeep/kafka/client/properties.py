"""Reads a standard Java `client.properties` into `ClientSettings`.

What Kafka's own tools accept with `--command-config` works here: PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL; PLAIN,
SCRAM and OAUTHBEARER; PEM and PKCS12 stores. Keys without a meaning here are noted and ignored. Unsupported keys that
would change the security of the connection, or whether it is possible at all, are refused rather than ignored.
Two keys are Logkeep's own: `logkeep.oauthbearer.token.command` and `logkeep.oauthbearer.token.file`.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args
from urllib.parse import unquote, urlsplit

from logkeep.errors import ConfigError
from logkeep.file_owners import OriginFile
from logkeep.kafka.client.security.credentials import read_properties
from logkeep.kafka.client.security.jaas import JaasEntry, parse_jaas
from logkeep.kafka.client.security.keystores import key_store, trust_store
from logkeep.kafka.client.settings import (
    ClientSettings,
    CommandSecret,
    FileSecret,
    Mechanism,
    PropertySecret,
    Protocol,
    Sasl,
    SecretPlace,
    endpoints,
)
from logkeep.secret_reading import refuse_readable_by_others

_SECRET_KEYS = ("sasl.jaas.config", "ssl.keystore.key")
_USED = {
    "bootstrap.servers", "security.protocol", "client.id", "client.rack", "request.timeout.ms",
    "socket.connection.setup.timeout.ms", "receive.buffer.bytes", "send.buffer.bytes", "sasl.mechanism",
    "sasl.jaas.config", "sasl.oauthbearer.token.endpoint.url", "ssl.truststore.type", "ssl.truststore.location",
    "ssl.truststore.password", "ssl.truststore.certificates", "ssl.keystore.type", "ssl.keystore.location",
    "ssl.keystore.password", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.key.password",
    "ssl.endpoint.identification.algorithm", "ssl.enabled.protocols", "ssl.protocol",
    "sasl.login.callback.handler.class", "logkeep.oauthbearer.token.command", "logkeep.oauthbearer.token.file",
}  # fmt: skip
_REFUSED = {
    "config.providers": "put the values into the file, or secrets into files of their own",
    "security.providers": "remove it: the TLS of this Python is used",
    "ssl.provider": "remove it: the TLS of this Python is used",
    "ssl.engine.factory.class": "use PEM stores",
    "ssl.cipher.suites": "remove it: the safe suites of OpenSSL are used",
    "sasl.client.callback.handler.class": "use PLAIN, SCRAM or OAUTHBEARER with a token file or command",
    "sasl.login.class": "use PLAIN, SCRAM or OAUTHBEARER with a token file or command",
    "sasl.kerberos.service.name": "Kerberos is not supported; use SCRAM or mutual TLS",
}
_TOKEN_HANDLERS = ("OAuthBearerLoginCallbackHandler", "OAuthBearerUnsecuredLoginCallbackHandler")
_NUMBER = re.compile(r"0*[1-9][0-9]{0,9}")
_LARGEST = 2**31 - 1
"""Java's largest int: Kafka's own clients take no larger number either."""
_LONGEST_TEXT = 2**15 - 1
_SAFE_TLS = {"TLSv1.2", "TLSv1.3", "TLS"}


def load_settings(path: Path, *, bootstrap: str = "") -> ClientSettings:
    """Settings from a file; `bootstrap` overrides the file's. Raises `ConfigError`, never with a secret in it."""
    file = read_properties(path.absolute(), private=False)
    if any(key in _SECRET_KEYS or key.endswith(".password") for key in file.found):
        refuse_readable_by_others(file.mode, path.absolute())
    return settings_from(file.found, file.origin, bootstrap=bootstrap)


def settings_from(found: Mapping[str, str], origin: OriginFile, *, bootstrap: str = "") -> ClientSettings:
    """The same for keys already read: workers will read the secrets from the path of `origin`."""
    path = origin.path
    _refuse(found, path)
    usual = ClientSettings(())
    settings = ClientSettings(
        bootstrap=endpoints(bootstrap or found.get("bootstrap.servers", "")),
        protocol=_protocol(found, path),
        client_id=_short(found, "client.id", path) or "logkeep",
        rack=_short(found, "client.rack", path),
        connect_timeout_s=_number(found, "socket.connection.setup.timeout.ms", usual.connect_timeout_s * 1000, path)
        / 1000,
        request_timeout_s=_number(found, "request.timeout.ms", usual.request_timeout_s * 1000, path) / 1000,
        receive_buffer_bytes=_number(found, "receive.buffer.bytes", usual.receive_buffer_bytes, path),
        send_buffer_bytes=_number(found, "send.buffer.bytes", usual.send_buffer_bytes, path),
        notes=tuple(f"{path.name}: {key} has no effect here" for key in sorted(found.keys() - _USED)),
    )
    if settings.tls:
        settings = replace(settings, trust=trust_store(found, path), identity=key_store(found, path))
    if settings.protocol.startswith("SASL_"):
        settings = replace(settings, sasl=_sasl(found, origin))
    if settings.sasl and not settings.tls:
        note = f"{path.name}: {settings.sasl.mechanism} without TLS {_without_tls(settings.sasl.mechanism)}"
        settings = replace(settings, notes=(*settings.notes, note))
    return settings


def _without_tls(mechanism: Mechanism) -> str:
    """What an eavesdropper on the network can do with this mechanism: the end of a warning."""
    if mechanism in {"PLAIN", "OAUTHBEARER"}:
        return "sends the secret in clear"
    return "lets others on the network guess the password offline, and read and change all that is sent"


def _refuse(found: Mapping[str, str], path: Path) -> None:
    for key in sorted(found.keys() & _REFUSED.keys()):
        raise ConfigError(f"{key} is not supported", subject=str(path), remedy=_REFUSED[key])
    if found.get("ssl.endpoint.identification.algorithm", "https").lower() != "https":
        raise ConfigError(
            "ssl.endpoint.identification.algorithm must be https: host names are always checked",
            subject=str(path),
            remedy="remove it, and give the brokers certificates with the names that clients use",
        )
    versions = found.get("ssl.enabled.protocols", "TLSv1.2") + "," + found.get("ssl.protocol", "TLS")
    unsafe = {each.strip() for each in versions.split(",")} - _SAFE_TLS
    if unsafe:
        raise ConfigError(
            f"{', '.join(sorted(unsafe))}: only TLSv1.2 and TLSv1.3 are supported",
            subject=str(path),
            remedy="correct ssl.enabled.protocols and ssl.protocol",
        )


def _protocol(found: Mapping[str, str], path: Path) -> Protocol:
    named = found.get("security.protocol", "PLAINTEXT").strip().upper()
    if named not in get_args(Protocol):
        known = ", ".join(get_args(Protocol))
        raise ConfigError(f"security.protocol {named} is unknown", subject=str(path), remedy=f"use one of {known}")
    return cast("Protocol", named)


def _number(found: Mapping[str, str], key: str, default: float, path: Path) -> int:
    text = found.get(key, str(int(default))).strip()
    if key.endswith(".bytes") and text == "-1":
        return -1
    if not _NUMBER.fullmatch(text) or int(text) > _LARGEST:
        raise ConfigError(
            f"{key} must be a whole number above zero and at most {_LARGEST}", subject=str(path), remedy="correct it"
        )
    return int(text)


def _short(found: Mapping[str, str], key: str, path: Path) -> str:
    """A text that is part of requests, which have two bytes for its length."""
    text = found.get(key, "")
    if len(text.encode("utf-8", "surrogatepass")) > _LONGEST_TEXT:
        raise ConfigError(f"{key} is longer than {_LONGEST_TEXT} bytes", subject=str(path), remedy="shorten it")
    return text


def _sasl(found: Mapping[str, str], origin: OriginFile) -> Sasl:
    path = origin.path
    named = found.get("sasl.mechanism", "GSSAPI").strip()
    if named not in get_args(Mechanism):
        known = ", ".join(get_args(Mechanism))
        raise ConfigError(f"sasl.mechanism {named} is not supported", subject=str(path), remedy=f"use one of {known}")
    mechanism = cast("Mechanism", named)
    handler = found.get("sasl.login.callback.handler.class", _TOKEN_HANDLERS[0])
    if not handler.endswith(_TOKEN_HANDLERS):
        raise ConfigError(
            "sasl.login.callback.handler.class cannot be run here",
            subject=str(path),
            remedy="provide the token with logkeep.oauthbearer.token.file or logkeep.oauthbearer.token.command",
        )
    if mechanism == "OAUTHBEARER":
        return Sasl(mechanism, "", _token(found, origin))
    entry = parse_jaas(found.get("sasl.jaas.config", ""), str(path))
    return _password(mechanism, entry, path)


def _password(mechanism: Mechanism, entry: JaasEntry, path: Path) -> Sasl:
    remedy = 'it needs exactly: username="…" password="…"'
    if mechanism not in entry.mechanisms:
        module = entry.module.rpartition(".")[2]
        raise ConfigError(
            f"sasl.jaas.config cannot be used, {module} does not serve {mechanism}",
            subject=str(path),
            remedy="use the login module of the mechanism",
        )
    if entry.options.get("tokenauth", "false").lower() != "false":
        raise ConfigError(
            "sasl.jaas.config cannot be used, delegation tokens are not supported", subject=str(path), remedy=remedy
        )
    missing = [name for name in ("username", "password") if not entry.options.get(name)]
    extra = sorted(entry.options.keys() - {"username", "password", "tokenauth"})
    if missing or extra:
        what = f"{' and '.join(missing)} missing" if missing else f"unknown option {extra[0]}"
        raise ConfigError(f"sasl.jaas.config cannot be used, {what}", subject=str(path), remedy=remedy)
    return Sasl(mechanism, entry.options["username"], PropertySecret(path, "sasl.jaas.config", "password"))


def _split_command(command: str, path: Path) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        what = f"logkeep.oauthbearer.token.command cannot be split into words: {error}".lower()
        raise ConfigError(what, subject=str(path), remedy="close its quotes") from None


def _file_of(url: str) -> str:
    """The path of a file URL; empty for any other text."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return unquote(parts.path) if parts.scheme == "file" else ""


def _token(found: Mapping[str, str], origin: OriginFile) -> SecretPlace:
    command = found.get("logkeep.oauthbearer.token.command", "").strip()
    if command:
        return CommandSecret(_split_command(command, origin.path), origin)
    file = found.get("logkeep.oauthbearer.token.file", "").strip()
    file = file or _file_of(found.get("sasl.oauthbearer.token.endpoint.url", "").strip())
    if file and "\0" not in file:
        return FileSecret(Path(file).absolute())
    raise ConfigError(
        "no source of the token is given",
        subject=str(origin.path),
        remedy="set sasl.oauthbearer.token.endpoint.url=file:///…, logkeep.oauthbearer.token.file or "
        "logkeep.oauthbearer.token.command; tokens are not asked for over HTTP",
    )
