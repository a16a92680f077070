"""A small certificate authority for tests: PEM and PKCS12 files for brokers and clients."""

import datetime
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Identity:
    """A certificate, its key, and who signed it."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    def encrypted_key_pem(self, password: str) -> str:
        secret = BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secret).decode()

    def write_pem(self, path: Path) -> Path:
        path.touch(mode=0o600)
        path.write_text(self.key_pem + self.pem)
        return path

    def write_pkcs12(self, path: Path, password: str) -> Path:
        secret = BestAvailableEncryption(password.encode())
        path.touch(mode=0o600)
        path.write_bytes(pkcs12.serialize_key_and_certificates(b"own", self.key, self.certificate, None, secret))
        return path


def authority(name: str) -> Identity:
    """A certificate authority that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _builder(name, name, key, days=30).add_extension(x509.BasicConstraints(True, None), True)
    return Identity(key, certificate.sign(key, hashes.SHA256()))


def signed(signer: Identity, name: str, *, host: str = "", days: int = 30) -> Identity:
    """A certificate by `signer`; with negative `days` it has expired so long ago."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = signer.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    builder = _builder(name, str(issuer), key, days=days)
    if host:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), False)
    return Identity(key, builder.sign(signer.key, hashes.SHA256()))


def _builder(name: str, issuer: str, key: ec.EllipticCurvePrivateKey, *, days: int) -> x509.CertificateBuilder:
    end = datetime.datetime.now(datetime.UTC) + days * _DAY
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - 60 * _DAY)
        .not_valid_after(end)
    )
