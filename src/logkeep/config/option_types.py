"""Types of options: how the text of a flag or variable, or a value in YAML, becomes a typed value.

`parse` and `from_yaml` return the value or raise ValueError with text that completes the sentence "<option> …" ("must
be a size such as 16MiB, not 'x'"); `show` returns text that `parse` can read.
"""

import re
import shlex
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from logkeep.config.time_text import UnclearTime, read_time
from logkeep.errors import UsageError
from logkeep.model.ids import source_name
from logkeep.model.redaction import names_credential
from logkeep.model.time import Clock, utc_now

ValueT_co = TypeVar("ValueT_co", covariant=True)

_SIZE = re.compile(r"(\d+)(?:\.(\d+))?\s*(?:([KMGTP])(i?B)?|B)?", re.IGNORECASE)
_DURATION = re.compile(r"(?:\d+(?:ms|[smhdw]))+")
_DURATION_PART = re.compile(r"(\d+)(ms|[smhdw])")
_UNITS = {
    "w": timedelta(weeks=1),
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
}
_LONGEST = timedelta(days=36_525)
"""A century: a moment that much earlier or later than now is still a date."""
_CLUSTER_SECRET = "spark.authenticate.secret"  # the name of a setting
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class OptionType(Protocol[ValueT_co]):
    """One type of option."""

    @property
    def metavar(self) -> str: ...

    @property
    def expected(self) -> str:
        """A description of valid values: `a size such as 16MiB`."""

    def parse(self, text: str) -> ValueT_co: ...

    def from_yaml(self, value: object) -> ValueT_co: ...

    def show(self, value: object) -> str: ...


@runtime_checkable
class Repeatable(Protocol[ValueT_co]):
    """A type whose flag may be given several times."""

    def from_flags(self, texts: tuple[str, ...]) -> ValueT_co: ...


def _wrong(kind: OptionType[object], value: object) -> ValueError:
    shown = (
        {True: "true", False: "false", None: "nothing"}.get(value) if isinstance(value, bool | None) else repr(value)
    )
    hint = "; put it in quotes" if isinstance(kind, Text) and isinstance(value, (bool, int, float)) else ""
    return ValueError(f"must be {kind.expected}, not {shown}{hint}")


class _FromText:
    """Most types accept the same text in YAML as on the command line."""

    def from_yaml(self: OptionType[ValueT_co], value: object) -> ValueT_co:
        if not isinstance(value, str):
            raise _wrong(self, value)
        return self.parse(value)

    def show(self, value: object) -> str:
        return str(value)


@dataclass(frozen=True)
class Text(_FromText):
    metavar: str = "TEXT"
    expected: str = "text"

    def parse(self, text: str) -> str:
        if not text:
            raise ValueError("must not be empty")
        return text


@dataclass(frozen=True)
class SourceName(_FromText):
    metavar: str = "NAME"
    expected: str = "a source name"

    def parse(self, text: str) -> str:
        try:
            return source_name(text)
        except UsageError as error:
            raise ValueError(f"is wrong: {error.what}; {error.remedy}") from None


@dataclass(frozen=True)
class FilePath(_FromText):
    """A path; `~` is the user's home, relative paths are below the working directory."""

    metavar: str = "FILE"
    expected: str = "a path"

    def parse(self, text: str) -> Path:
        if not text or "\0" in text:
            raise _wrong(self, text)
        try:
            return Path(text).expanduser()
        except RuntimeError:  # `~name` of an unknown user
            raise _wrong(self, text) from None


@dataclass(frozen=True)
class Int:
    minimum: int = 0
    maximum: int = 2**31 - 1
    metavar: str = "N"

    @property
    def expected(self) -> str:
        top = "" if self.maximum >= 2**31 - 1 else f" and at most {self.maximum}"
        return f"a whole number of at least {self.minimum}{top}"

    def parse(self, text: str) -> int:
        if not re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
            raise _wrong(self, text)
        return self.from_yaml(int(text))

    def from_yaml(self, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not self.minimum <= value <= self.maximum:
            raise _wrong(self, value)
        return value

    def show(self, value: object) -> str:
        return str(value)


@dataclass(frozen=True)
class Bool:
    metavar: str = ""
    expected: str = "true or false"

    def parse(self, text: str) -> bool:
        if text.lower() not in _YES + _NO:
            raise _wrong(self, text)
        return text.lower() in _YES

    def from_yaml(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise _wrong(self, value)
        return value

    def show(self, value: object) -> str:
        return "true" if value else "false"


@dataclass(frozen=True)
class Size:
    """Bytes. K, M, G … are powers of 1024, with or without `iB`."""

    metavar: str = "SIZE"
    expected: str = "a size such as 16MiB, 16M or 16777216"
    minimum: int = 1

    def parse(self, text: str) -> int:
        found = _SIZE.fullmatch(text.strip())
        if not found:
            raise _wrong(self, text)
        whole, fraction, unit = found.group(1), found.group(2) or "", (found.group(3) or "").upper()
        factor: int = 1024 ** " KMGTP".index(unit) if unit else 1
        size = Fraction(int(whole + fraction), 10 ** len(fraction)) * factor
        if size.denominator != 1 or not self.minimum <= size < 2**63:
            raise _wrong(self, text)
        return int(size)

    def from_yaml(self, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise _wrong(self, value)
        return self.parse(str(value))

    def show(self, value: object) -> str:
        size = int(str(value))
        for power in range(5, 0, -1):
            if size and size % 1024**power == 0:
                return f"{size // 1024**power}{' KMGTP'[power]}iB"
        return str(size)


@dataclass(frozen=True)
class Duration(_FromText):
    metavar: str = "DURATION"
    expected: str = "a duration such as 10s, 5m, 24h or 7d"

    def parse(self, text: str) -> timedelta:
        if not _DURATION.fullmatch(text.strip(), 0, 40):
            raise _wrong(self, text)
        try:
            found = sum((int(n) * _UNITS[u] for n, u in _DURATION_PART.findall(text)), timedelta())
        except OverflowError:
            raise _wrong(self, text) from None
        if found > _LONGEST:
            raise ValueError(f"must be at most {_LONGEST.days}d, not {text!r}")
        return found

    def show(self, value: object) -> str:
        return show_duration(value) if isinstance(value, timedelta) else str(value)


def show_duration(value: timedelta) -> str:
    """The shortest exact text: 24 hours are `1d`, 90 seconds `1m30s`."""
    parts, rest = [], value
    for unit, size in _UNITS.items():
        if unit != "w" and rest >= size:
            parts.append(f"{rest // size}{unit}")
            rest %= size
    return "".join(parts) or "0s"


@dataclass(frozen=True)
class Timestamp(_FromText):
    """A point in time as milliseconds since 1970; `time_text` says how it is written.

    A relative time is resolved here, once: whatever stores the value stores the absolute time.
    """

    metavar: str = "TIME"
    expected: str = "a time such as 2026-11-14T02:00:00Z, '2026-11-14 02:00 Europe/Zurich' or -10m"
    clock: Clock = utc_now

    def parse(self, text: str) -> int:
        try:
            return read_time(text, self.clock())
        except UnclearTime:
            raise
        except ValueError:
            raise _wrong(self, text) from None


@dataclass(frozen=True)
class ZxidNumber:
    """A ZooKeeper transaction id, as ZooKeeper prints it (`0x500000001`) or as a decimal number.

    File names have the hexadecimal digits without `0x`; such a text is refused, because `10` could be either.
    """

    metavar: str = "ZXID"
    expected: str = "a transaction id such as 0x500000001 or 21474836481"

    def parse(self, text: str) -> int:
        if not re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,19}", text):
            hint = f"; did you mean 0x{text}?" if re.fullmatch(r"[0-9a-fA-F]{1,16}", text) else ""
            raise ValueError(f"{_wrong(self, text)}{hint}")
        number = int(text, 16) if text[:2].lower() == "0x" else int(text)
        if number >= 1 << 63:
            raise _wrong(self, text)
        return number

    def from_yaml(self, value: object) -> int:
        return self.parse(str(value))

    def show(self, value: object) -> str:
        return f"0x{value:x}" if isinstance(value, int) else str(value)


@dataclass(frozen=True)
class Ratio(_FromText):
    """A fraction above 0 and at most 1."""

    metavar: str = "PART"
    expected: str = "a part such as 1/7, 2.5% or 0.1"

    def parse(self, text: str) -> Fraction:
        percent = text.strip().endswith("%")
        try:
            part = Fraction(text.strip().removesuffix("%").strip()[:30]) / (100 if percent else 1)
        except (ValueError, ZeroDivisionError):
            raise _wrong(self, text) from None
        if not 0 < part <= 1:
            raise _wrong(self, text)
        return part

    def from_yaml(self, value: object) -> Fraction:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise _wrong(self, value)
        return self.parse(str(value))


@dataclass(frozen=True)
class OneOf(_FromText):
    choices: tuple[str, ...]

    @property
    def metavar(self) -> str:
        return "|".join(self.choices)

    @property
    def expected(self) -> str:
        return f"one of {', '.join(self.choices)}"

    def parse(self, text: str) -> str:
        if text not in self.choices:
            raise _wrong(self, text)
        return text


@dataclass(frozen=True)
class TextList:
    """Several texts: a repeated flag, a variable split at commas, a YAML list or single text."""

    metavar: str = "TEXT"
    expected: str = "a list of texts"

    def parse(self, text: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in text.split(",") if part.strip())

    def from_flags(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        return self.from_yaml(list(texts))

    def from_yaml(self, value: object) -> tuple[str, ...]:
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) and item for item in items):
            raise _wrong(self, value)
        return tuple(items)

    def show(self, value: object) -> str:
        return ",".join(value) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True)
class SparkConf:
    """`KEY=VALUE` pairs for Spark. Its UI and event logs show them, so credentials are refused."""

    metavar: str = "KEY=VALUE"
    expected: str = "pairs KEY=VALUE"

    def parse(self, text: str) -> tuple[tuple[str, str], ...]:
        return self.from_flags(tuple(shlex.split(text)))

    def from_flags(self, texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        for text in texts:
            if "=" not in text:
                raise _wrong(self, text)
        return self._checked([(key, value) for key, _, value in (text.partition("=") for text in texts)])

    def from_yaml(self, value: object) -> tuple[tuple[str, str], ...]:
        if not isinstance(value, dict) or not all(isinstance(v, (str, int, float, bool)) for v in value.values()):
            raise ValueError("must be a mapping of Spark settings to plain values")
        spelled = {str(k): str(v).lower() if isinstance(v, bool) else str(v) for k, v in value.items()}
        return self._checked(list(spelled.items()))

    def _checked(self, pairs: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        for key, value in pairs:
            if not key.startswith("spark."):
                raise ValueError(f"has {key!r}, but Spark settings start with 'spark.'")
            if key.startswith(_CLUSTER_SECRET) or _CLUSTER_SECRET in value:
                raise ValueError(f"has the cluster's secret, or its file, in {key!r}: use --spark-secret-file")
            if names_credential(key):
                raise ValueError(f"has the credential {key!r}, which Spark would show: use the environment or a file")
        return tuple(pairs)

    def show(self, value: object) -> str:
        return " ".join(f"{k}={v}" for k, v in value) if isinstance(value, tuple) else str(value)
