"""Configuration files of a server that a backup stores: redacted copies, or originals on request.

`zoo.cfg` and its dynamic files, `java.env`, `jaas.conf`, `myid`: as text, with every password replaced. Key stores and
files that hold secrets as such are copied only with `include_secrets`. A keytab is never copied: it lets its holder act
as the server. Files that were left out are named, one line each.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from logkeep.model.redaction import redact

_LARGEST_BYTES = 4 << 20
_KEYTAB = re.compile(r".*\.(?:keytab|ktab)|krb5\.keytab.*")
_STORE = re.compile(r".*\.(?:jks|p12|pfx|keystore|truststore|bcfks|key)")
_TEXT = re.compile(
    r"zoo(?:_sample)?\.cfg|zoo.*\.cfg\.dynamic.*|zoo\.cfg\.bak|java\.env|.*jaas.*\.conf|log(?:4j|back).*|myid"
)
_PEM = re.compile(r".*\.(?:pem|crt|cer)")


@dataclass(frozen=True)
class ConfigFile:
    """A file in the form in which it is stored."""

    name: str
    content: bytes
    redacted: bool


@dataclass(frozen=True)
class Configuration:
    files: tuple[ConfigFile, ...] = ()
    left_out: tuple[str, ...] = ()


def usual_places(data_dir: Path, environment: dict[str, str]) -> list[Path]:
    """The existing directories among those that commonly hold a server's configuration."""
    named = [environment.get("ZOOCFGDIR"), environment.get("ZOO_CONF_DIR")]
    homes = [environment.get("ZOOKEEPER_HOME"), environment.get("ZOO_HOME")]
    above = data_dir.parent if data_dir.name == "version-2" else data_dir
    places = [
        *(Path(p) for p in named if p),
        *(Path(h) / "conf" for h in homes if h),
        *(above, above.parent / "conf", Path("/etc/zookeeper/conf"), Path("/etc/zookeeper"), Path("/conf")),
    ]
    return [place for place in dict.fromkeys(places) if place.is_dir()]


def gather_config(places: Sequence[Path], *, include_secrets: bool) -> Configuration:
    """Read the directories; the first one with a file of a name wins. Unreadable files are left out and named."""
    files: dict[str, ConfigFile] = {}
    left_out: list[str] = []
    for path in _candidates(places):
        if path.name in files:
            continue
        found = _read_config(path, include_secrets=include_secrets)
        if isinstance(found, str):
            left_out.append(f"{path}: {found}")
        else:
            files[path.name] = found
    return Configuration(tuple(files.values()), tuple(left_out))


def _candidates(places: Iterable[Path]) -> Iterator[Path]:
    for place in places:
        try:
            entries = sorted(place.iterdir())
        except OSError:
            continue
        yield from (p for p in entries if p.is_file() and any(k.fullmatch(p.name) for k in _KINDS))


_KINDS = (_KEYTAB, _STORE, _TEXT, _PEM)


def _read_config(path: Path, *, include_secrets: bool) -> ConfigFile | str:
    """What to store of a file, or why nothing is stored."""
    if (refused := _refusal(path.name, include_secrets=include_secrets)) is not None:
        return refused
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            return "too large for a configuration file"
        content = path.read_bytes()
    except OSError as error:
        return f"it cannot be read ({(error.strerror or 'unknown reason').lower()})"
    if include_secrets:
        return ConfigFile(path.name, content, redacted=False)
    if b"PRIVATE KEY" in content:
        return "it holds a private key, which is copied only with --include-secrets"
    return _without_secrets(path.name, content)


def _refusal(name: str, *, include_secrets: bool) -> str | None:
    """Why a file of this name is not read at all."""
    if _KEYTAB.fullmatch(name):
        return "a Kerberos keytab is never copied"
    if _STORE.fullmatch(name) and not include_secrets:
        return "a key store is copied only with --include-secrets"
    return None


def _without_secrets(name: str, content: bytes) -> ConfigFile:
    clean = redact(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    clean = _TOKEN.sub(rb"\1***", _SUPER_USER.sub(rb"\1***", clean))
    if name.endswith(".xml"):  # in other files a word in angle brackets is not an element
        for hiding in _IN_XML:
            clean = hiding.sub(rb"\1***", clean)
    if "jaas" in name:
        clean = _JAAS_USER.sub(rb'\1"***"', clean)
    return ConfigFile(name, clean, redacted=clean != content)


_WORDS = r"(?:passw(?:or)?d|passphrase|pwd|secret|token|credential|api_?key|private_?key)"
_NAMED = rf"[^\"'<>]*{_WORDS}[^\"'<>]*"
_IN_XML = tuple(
    re.compile(pattern.encode(), re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"(<[\w.:-]*{_WORDS}[\w.:-]*(?:\s[^<>]*)?>)(?:<!\[CDATA\[.*?\]\]>|<!--.*?-->|[^<])+",
        rf"(\b(?:name|key)\s*=\s*[\"']{_NAMED}[\"'][^<>]*?\bvalue\s*=\s*)(?:\"[^\"]*\"|'[^']*')",
        rf"(<[^<>]*?\bvalue\s*=\s*)(?:\"[^\"]*\"|'[^']*')(?=[^<>]*?\b(?:name|key)\s*=\s*[\"']{_NAMED}[\"'])",
        rf"(\b(?:name|key)\s*=\s*[\"']{_NAMED}[\"'](?:\s[^<>]*)?(?<!/)>)(?:<!\[CDATA\[.*?\]\]>|<!--.*?-->|[^<])+",
    )
)
"""Forms of logback and log4j appenders: elements, and properties with a name and a value or text."""
_JAAS_USER = re.compile(rb'((?:\buser_[^\s=]+|\bpassword)\s*=\s*)"[^"]*"')
"""In a JAAS section of a server `user_<name>="<password>"` is a password too."""
_SUPER_USER = re.compile(rb"(?i)(superDigest\s*[=:]\s*[\"']?)[^\s\"']+")
"""Name and password hash of the superuser."""
_TOKEN = re.compile(rb"(?i)(\b[\w.-]*token\s*[=:]\s*[\"']?)[^\s\"']+")
"""Credential of a metrics provider or audit log, as in `metricsProvider.token`."""
