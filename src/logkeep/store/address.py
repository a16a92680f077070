"""Parses store URLs into an address without secrets.

    /dir  ./dir  file:///dir
    s3://bucket/prefix?endpoint=https://host:port&region=eu-central-1
    gs://bucket/prefix
    az://container/prefix?account=name

Credentials come from the environment, files or the cloud's own chain. A URL that contains one is refused, and the error
does not repeat it: URLs end up in shell history, process lists and manifests.
"""

import difflib
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from logkeep.errors import UnsafeName, UsageError
from logkeep.store.base import safe_name

_FORMS = "use a directory, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix"
_SECRET = re.compile(r"key|secret|token|pass|pwd|credential|signature|^sig$|^sv$|^se$|sas", re.IGNORECASE)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,221}")
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_REGION = re.compile(r"[A-Za-z0-9-]{1,40}")
_FORMS_OF = {"account": _ACCOUNT, "checksum": re.compile("none")}
_MAX_PREFIX = 120
"""The longest prefix: with the longest object name it still fits into the 1,024 bytes of an S3 key."""


class StoreKind(StrEnum):
    LOCAL = "file"
    S3 = "s3"
    GCS = "gs"
    AZURE = "az"


_OPTIONS: dict[StoreKind, tuple[str, ...]] = {
    StoreKind.LOCAL: (),
    StoreKind.S3: ("endpoint", "region", "checksum"),
    StoreKind.GCS: ("endpoint",),
    StoreKind.AZURE: ("account", "endpoint"),
}


@dataclass(frozen=True)
class Address:
    """The location of a store. Contains no secret, so it may be printed, stored and sent to workers."""

    kind: StoreKind
    bucket: str
    """Bucket or container; empty for a directory."""
    prefix: str
    """Without slashes at the ends; for a directory, its absolute path."""
    endpoint: str = ""
    region: str = ""
    account: str = ""
    checksum: str = ""
    """`none`: writes carry no checksum, for servers that refuse the header."""

    @property
    def url(self) -> str:
        """The canonical URL; parsing it gives this address again."""
        if self.kind is StoreKind.LOCAL:
            return Path(self.prefix).as_uri()
        pairs = [(name, getattr(self, name)) for name in _OPTIONS[self.kind]]
        query = "&".join(f"{name}={quote(value, safe=':/')}" for name, value in pairs if value)
        return f"{self.kind}://{self.bucket}{'/' + self.prefix if self.prefix else ''}{'?' + query if query else ''}"

    @property
    def encrypted_transport(self) -> bool:
        """False if bytes and signatures are sent unencrypted."""
        return not self.endpoint.startswith("http://")


def parse_address(url: str) -> Address:
    """Parse a URL as the user types it. Raises UsageError without repeating any secret."""
    scheme = _SCHEME.match(url)
    if scheme is None:
        return _directory(url)
    try:
        kind = StoreKind(scheme.group(1).lower())
    except ValueError:
        raise UsageError(f"unknown kind of store {scheme.group(1)}://", remedy=_FORMS) from None
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets that are no IPv6 address
        raise UsageError("the store URL is not a URL", remedy=_FORMS) from None
    options = _options(kind, parts)
    if kind is StoreKind.LOCAL:
        return _file_url(parts)
    return Address(kind=kind, bucket=_bucket(parts), prefix=_prefix(parts), **options)


def _directory(text: str) -> Address:
    if not text or "\0" in text:
        raise UsageError("the store URL is empty or contains a NUL byte", remedy=_FORMS)
    return Address(kind=StoreKind.LOCAL, bucket="", prefix=str(Path(text).expanduser().absolute()))


def _file_url(parts: SplitResult) -> Address:
    if parts.netloc not in {"", "localhost"}:
        raise UsageError("a file URL has three slashes: file:///directory", remedy=_FORMS)
    return _directory(unquote(parts.path))


def _options(kind: StoreKind, parts: SplitResult) -> dict[str, str]:
    if "@" in parts.netloc:
        raise _secret_refused("user information before '@'")
    if parts.fragment:
        raise UsageError("a store URL has no '#' part", remedy=_FORMS)
    options: dict[str, str] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in _OPTIONS[kind]:
            raise _unknown_option(kind, name)
        if name in options:
            raise UsageError(f"the option {name} is given twice in the store URL")
        options[name] = _checked_option(name, value)
    return options


def _unknown_option(kind: StoreKind, name: str) -> UsageError:
    if _SECRET.search(name):
        return _secret_refused(f"the option {name[:40]!r}")
    known = _OPTIONS[kind]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"{kind}:// knows {', '.join(known) or 'no options'}"
    return UsageError(f"unknown option {name[:40]!r} in the store URL", remedy=hint)


def _secret_refused(where: str) -> UsageError:
    return UsageError(
        f"the store URL contains a credential ({where})",
        remedy="remove it from the URL and change it, as it may be in your shell history; credentials are read from "
        "the environment (AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_KEY, …), "
        "from the cloud's own files, or from the identity of the host",
    )


def _checked_option(name: str, value: str) -> str:
    if name == "endpoint":
        return checked_endpoint(value)
    form = _FORMS_OF.get(name, _REGION)
    if not form.fullmatch(value):
        raise UsageError(f"the {name} in the store URL is not valid")
    return value


def checked_endpoint(value: str) -> str:
    """The endpoint without slashes at its end. Raises UsageError, which does not repeat it."""
    try:
        parts = urlsplit(value)
        port_fits = parts.port is None or parts.port > 0
    except ValueError:
        raise UsageError("the endpoint is not a URL") from None
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise _secret_refused("the endpoint may contain only scheme, host, port and path")
    if parts.scheme not in {"http", "https"} or not parts.hostname or not port_fits:
        raise UsageError("the endpoint is not an http(s) URL", remedy="for example https://host:9000")
    return value.rstrip("/")


def _bucket(parts: SplitResult) -> str:
    if not parts.netloc:
        raise UsageError("the store URL has no bucket", remedy=_FORMS)
    if not _BUCKET.fullmatch(parts.netloc):
        remedy = "use letters, digits, '.', '_' and '-', on S3 at least three"
        raise UsageError("this cannot be the name of a bucket", remedy=remedy)
    return parts.netloc


def _prefix(parts: SplitResult) -> str:
    prefix = unquote(parts.path).strip("/")
    try:
        if prefix:
            safe_name(prefix)
    except UnsafeName:
        raise UsageError("the path in the store URL has characters that are not allowed in object names") from None
    if len(prefix) > _MAX_PREFIX:
        raise UsageError(f"the path in the store URL is longer than {_MAX_PREFIX} characters")
    return prefix
