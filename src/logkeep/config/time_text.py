"""Points in time as people write them. Pure: a text and the present time in, milliseconds since 1970 out.

    2026-11-14T02:00:00Z, 2026-11-14 02:00 +01:00    as they are
    2026-11-14 02:00                                 UTC: clusters have no time zone
    2026-11-14 02:00 Europe/Zurich                   by the clock of that zone
    -10m, -1h30m                                     before now
    1763085600123                                    milliseconds since 1970

A time that the clocks of a zone show twice or never (when daylight saving time ends or begins) is refused.
"""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

_LATEST_MS = 253_402_300_799_999
"""The end of the year 9999; `datetime` has nothing later."""
_RELATIVE = re.compile(r"-((?:\d{1,9}[smhdw])+)", re.ASCII)
_PART = re.compile(r"(\d+)([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_IN_ZONE = re.compile(r"(\S.*\S)\s+(?!Z$)([A-Za-z_]+(?:/[A-Za-z0-9_+-]+){0,2})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class UnclearTime(ValueError):
    """The form is right, but the time is not clear. Its text completes the sentence "<option> …"."""


def read_time(text: str, now: datetime) -> int:
    """Milliseconds since 1970. Raises ValueError, and UnclearTime where the form is right."""
    text = text.strip()
    if re.fullmatch(r"\d{11,16}", text, re.ASCII) and int(text) <= _LATEST_MS:
        return int(text)
    if relative := _RELATIVE.fullmatch(text):
        return _before(now, relative[1])
    if zoned := _IN_ZONE.fullmatch(text):
        return _since_1970(_in_zone(_iso(zoned[1]), zoned[2]))
    found = _iso(text)
    return _since_1970(found if found.tzinfo else found.replace(tzinfo=UTC))


def assumption(text: str) -> str:
    """What the text leaves open and `read_time` fills in, for people: empty where it says all itself."""
    text = text.strip()
    if _RELATIVE.fullmatch(text):
        return "before now"
    if zoned := _IN_ZONE.fullmatch(text):
        return zoned[2]
    bare = not re.fullmatch(r"\d{11,16}", text, re.ASCII) and _iso(text).tzinfo is None
    return "UTC, as no time zone is given" if bare else ""


def _iso(text: str) -> datetime:
    """Like `fromisoformat`, also with a space before the offset."""
    return datetime.fromisoformat(re.sub(r"\s+([+-]\d\d:?\d\d|Z)$", r"\1", text))


def _before(now: datetime, length: str) -> int:
    seconds = sum(int(number) * _SECONDS[unit] for number, unit in _PART.findall(length))
    if timedelta(seconds=min(seconds, 10**12)) > now - _EPOCH:
        raise ValueError("before 1970")
    return _since_1970(now - timedelta(seconds=seconds))


def _in_zone(local: datetime, name: str) -> datetime:
    if local.tzinfo is not None:
        raise UnclearTime(f"has an offset and the zone {name}: give one of them")
    try:
        zone = ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        raise UnclearTime(f"names the time zone {name}, which this machine does not know: give an offset") from None
    first, second = (local.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() != second.utcoffset():
        often = "twice" if first.utcoffset() > second.utcoffset() else "never"  # type: ignore[operator]  # a zone has offsets
        raise UnclearTime(f"is shown {often} by clocks in {name}: give an offset such as +01:00")
    return first


def _since_1970(moment: datetime) -> int:
    since = moment - _EPOCH
    after_ms = since // timedelta(milliseconds=1)
    if not 0 <= after_ms <= _LATEST_MS:
        raise ValueError("before 1970 or after 9999")
    return after_ms
