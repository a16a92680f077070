"""TLS contexts that always verify the server, and error messages for failed handshakes.

TLS 1.2 or newer, certificate authority and host name checked; there is no switch to turn that off. PKCS12 stores are
read by the `cryptography` package. Python's `ssl` reads keys only from files, so the private key is passed to it in a
file without a name that exists in memory only: it is gone when this process ends, also by SIGKILL.
"""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from logkeep.errors import TlsFailed
from logkeep.kafka.client.security.credentials import read_file, reveal_place
from logkeep.kafka.client.settings import ClientSettings, KeyStore, PropertySecret, TrustStore

_EXPIRED, _NOT_YET, _HOST, _ADDRESS = 10, 9, 62, 64
_UNKNOWN_AUTHORITY = {2, 18, 19, 20, 21}
_NOT_TLS = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"}


class Pems(NamedTuple):
    """A certificate chain (or authorities) and its unencrypted key."""

    certificates: str
    key: str


def tls_context(settings: ClientSettings) -> ssl.SSLContext:
    """A context that verifies servers. Raises `TlsFailed` or `ConfigError` if a store cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if settings.trust is None:
        context.load_default_certs()
    else:
        _trust(context, settings.trust)
    if settings.identity is not None:
        _identify(context, settings.identity)
    return context


def _trust(context: ssl.SSLContext, store: TrustStore) -> None:
    if store.location is None:
        text = store.text.encode("ascii", "ignore").decode()
    elif store.kind == "PEM":
        text = read_file(store.location, private=False).decode("ascii", "ignore")  # comments may hold any text
    else:
        text = _pkcs12(store.location, store.password).certificates
    try:
        context.load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError) as error:
        subject = str(store.location or "ssl.truststore.certificates")
        raise TlsFailed("holds no certificate that can be read", subject=subject) from error


def _identify(context: ssl.SSLContext, store: KeyStore) -> None:
    subject = str(store.location or "ssl.keystore.key")
    password = reveal_place(store.password).reveal() if store.password and store.kind == "PEM" else ""
    with _chain_file(store) as chain:
        try:
            context.load_cert_chain(chain, password=lambda: password)
        except ssl.SSLError as error:
            raise TlsFailed(
                "the private key and its certificate cannot be used together",
                subject=subject,
                remedy="check ssl.key.password, and that the store holds the key and the chain of one certificate",
            ) from error


@contextmanager
def _chain_file(store: KeyStore) -> Iterator[Path]:
    """A file with the key and its chain, as long as the block lasts."""
    if store.kind == "PEM" and store.location is not None:
        read_file(store.location, private=True)
        yield store.location
        return
    if store.location is not None:
        pems = _pkcs12(store.location, store.password)
    elif store.key is not None:
        pems = Pems(store.chain, reveal_place(store.key).reveal())
    else:
        raise TlsFailed("the key store has no private key", subject="ssl.keystore.key")
    with os.fdopen(os.memfd_create("logkeep-tls", os.MFD_CLOEXEC), "wb", buffering=0) as memory:
        os.fchmod(memory.fileno(), 0o600)
        memory.write(f"{pems.key}\n{pems.certificates}".encode())
        yield Path(f"/proc/self/fd/{memory.fileno()}")


def _pkcs12(location: Path, password: PropertySecret | None) -> Pems:
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415  needed by few, slow to load
        Encoding,
        NoEncryption,
        PrivateFormat,
        pkcs12,
    )

    phrase = reveal_place(password).reveal().encode() if password else None
    try:
        store = pkcs12.load_pkcs12(read_file(location, private=False), phrase)
    except ValueError as error:
        raise TlsFailed(
            "cannot be opened", subject=str(location), remedy="check ssl.truststore.password or ssl.keystore.password"
        ) from error
    own = [store.cert] if store.cert else []
    chain = "".join(each.certificate.public_bytes(Encoding.PEM).decode() for each in [*own, *store.additional_certs])
    plain = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Pems(chain, store.key.private_bytes(*plain).decode() if store.key else "")


def explain_tls(error: ssl.SSLError, where: str) -> TlsFailed:
    """An OpenSSL error as a message and a remedy for the user."""
    what, remedy = _meaning(error)
    return TlsFailed(what, subject=where, remedy=remedy)


def answers_with_tls(error: BaseException | None) -> bool:
    """Whether a failed handshake shows that the server speaks TLS: it sent a certificate or an alert."""
    return isinstance(error, ssl.SSLError) and (error.reason or "").upper() not in _NOT_TLS


def _meaning(error: ssl.SSLError) -> tuple[str, str]:
    code = getattr(error, "verify_code", 0)
    if code in {_HOST, _ADDRESS}:
        return "the broker's certificate is for another host name", (
            "connect by a name in the certificate, or issue one with this name"
        )
    if code in {_EXPIRED, _NOT_YET}:
        state = "has expired" if code == _EXPIRED else "is not valid yet"
        return f"the broker's certificate {state}", "renew it, and check this machine's clock"
    if code in _UNKNOWN_AUTHORITY:
        return "the broker's certificate is signed by an unknown authority (CA)", (
            "put the authority that signs the brokers' certificates into ssl.truststore.location"
        )
    reason = (getattr(error, "reason", "") or "").upper()
    if "ALERT" in reason:
        alert = reason.rpartition("ALERT_")[2].replace("_", " ").lower()
        return f"the broker ended the TLS handshake ({alert})", (
            "if it requires client certificates, set ssl.keystore.*; check that it trusts their authority"
        )
    return f"the TLS handshake failed ({reason.replace('_', ' ').lower() or 'no reason given'})", TlsFailed.remedy
