"""Trust and key stores of `ssl.truststore.*` and `ssl.keystore.*`. Their kind is found from the content, not the name.

Modern keytool writes PKCS12 into files called `.jks`, and Java accepts both, so the first bytes decide. The old JKS
container is refused; the error shows the command that converts it.
"""

from collections.abc import Mapping
from pathlib import Path

from logkeep.errors import ConfigError
from logkeep.kafka.client.security.credentials import read_file
from logkeep.kafka.client.settings import KeyStore, PropertySecret, StoreKind, TrustStore
from logkeep.model.shell_words import shell_word

_JKS_MAGIC = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_DER_SEQUENCE = b"\x30"


def trust_store(found: Mapping[str, str], path: Path) -> TrustStore | None:
    """The trust store that the properties name; None: the certificate authorities of this machine are used."""
    if found.get("ssl.truststore.certificates"):
        return TrustStore("PEM", text=found["ssl.truststore.certificates"])
    if not found.get("ssl.truststore.location"):
        return None
    location = Path(found["ssl.truststore.location"]).absolute()
    kind = _kind(location, private=False)
    password = PropertySecret(path, "ssl.truststore.password") if found.get("ssl.truststore.password") else None
    return TrustStore(kind, location, password=password)


def key_store(found: Mapping[str, str], path: Path) -> KeyStore | None:
    """The key store that the properties name; None: no client certificate."""
    key = PropertySecret(path, "ssl.keystore.key") if found.get("ssl.keystore.key") else None
    chain = found.get("ssl.keystore.certificate.chain", "")
    password = _key_password(found, path)
    if key or chain:
        if not (key and chain):
            raise ConfigError(
                "ssl.keystore.key and ssl.keystore.certificate.chain belong together",
                subject=str(path),
                remedy="set both, or ssl.keystore.location",
            )
        return KeyStore("PEM", chain=chain, key=key, password=password)
    if not found.get("ssl.keystore.location"):
        return None
    location = Path(found["ssl.keystore.location"]).absolute()
    return KeyStore(_kind(location, private=True), location, password=password)


def _key_password(found: Mapping[str, str], path: Path) -> PropertySecret | None:
    for name in ("ssl.key.password", "ssl.keystore.password"):
        if found.get(name):
            return PropertySecret(path, name)
    return None


def _kind(location: Path, *, private: bool) -> StoreKind:
    data = read_file(location, private=False)
    if data.startswith(_JKS_MAGIC):
        raise ConfigError(
            "is a JKS store, which only Java can read",
            subject=str(location),
            remedy=f"convert it: keytool -importkeystore -srckeystore {shell_word(location)} "
            f"-destkeystore {shell_word(f'{location.stem}.p12')} "
            "-deststoretype PKCS12",
        )
    kind: StoreKind = "PEM" if b"-----BEGIN " in data else "PKCS12"
    if kind == "PKCS12" and not data.startswith(_DER_SEQUENCE):
        raise ConfigError(
            "is neither PEM nor PKCS12", subject=str(location), remedy="check ssl.truststore/keystore.location"
        )
    if private and kind == "PEM":
        read_file(location, private=True)
    return kind
