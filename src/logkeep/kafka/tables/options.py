"""The options of `spark.read.format("logkeep")`: those of Spark's Kafka source, and which backup to read. Pure.

Names are compared without case, as Spark does. An unknown name is refused: a misspelt `startingOffsets` must not read
everything. Options of the Kafka client (`kafka.…`) are accepted, because a job keeps them when it changes its format;
only `kafka.isolation.level` has an effect. No option holds credentials: stores take them from the environment.
"""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

from logkeep.errors import UsageError

EARLIEST: Final = -2
LATEST: Final = -1
COLUMNS: Final = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key: string, value: binary>>",
}
"""Names and types of Spark's Kafka source, in its order."""
DECODED: Final = {"key_json": "string", "value_json": "string"}
"""Columns that the option `decode` adds."""
Isolation = Literal["committed", "all"]
TopicPartitions = Mapping[str, Mapping[int, int]]
"""A number for each partition of each topic."""

_SELECTIONS = ("subscribe", "subscribePattern", "assign")
_OWN = ("repo", "source", "versionAsOf", "timestampAsOf", "isolation", "columns", "pushdown", "decode")
_OF_KAFKA = (
    *_SELECTIONS,
    *("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy"),
    *("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"),
    *("minPartitions", "includeHeaders", "failOnDataLoss"),
)
_NO_EFFECT = ("groupIdPrefix", "maxRecordsPerPartition")
_PREFIXES_NO_EFFECT = ("kafka.", "kafkaconsumer.", "fetchoffset.")
_SECRET_WORDS = ("password", "secret", "token", "credential", "access_key", "accesskey", "account_key")


@dataclass(frozen=True)
class RangeEnd:
    """Where reading begins or ends: a number or time for all partitions, or one for each."""

    everywhere: int
    """An offset (or EARLIEST, LATEST), or a time in ms."""
    each: TopicPartitions = field(default_factory=dict)
    is_time: bool = False


@dataclass(frozen=True)
class TableOptions:
    repo: str
    source: str | None = None
    backup: str = "latest"
    """An id, or `latest`."""
    finished_by: datetime | None = None
    """The newest backup that was complete at this time."""
    topics: tuple[str, ...] = ()
    """Exact names; all of them must be there."""
    pattern: str | None = None
    assigned: Mapping[str, frozenset[int]] | None = None
    start: RangeEnd = RangeEnd(EARLIEST)
    end: RangeEnd = RangeEnd(LATEST)
    late_start_is_end: bool = False
    """A starting time that no record has reached means the end of the log; otherwise it is refused."""
    min_partitions: int = 0
    fail_on_data_loss: bool = True
    isolation: Isolation = "committed"
    pushdown: bool = False
    """Filters of the query limit what is read."""
    columns: tuple[str, ...] = tuple(COLUMNS)[:-1]

    @property
    def schema(self) -> str:
        """Column names and types, as Spark writes them."""
        types = COLUMNS | DECODED
        return ", ".join(f"{name} {types[name]}" for name in self.columns)

    @property
    def decoded(self) -> bool:
        """Whether keys or values are decoded."""
        return not DECODED.keys().isdisjoint(self.columns)


def parse_options(options: Mapping[str, str]) -> TableOptions:
    """Parse the options of a query. Raises UsageError."""
    given = {name.lower(): value for name, value in options.items()}
    isolation = _isolation(given)
    known = {name.lower(): name for name in (*_OWN, *_OF_KAFKA, *_NO_EFFECT)}
    for name in given:
        if name not in known and name != "path" and not name.startswith(_PREFIXES_NO_EFFECT):
            raise _unknown(name, known)
    taken = {known[name]: value for name, value in given.items() if name in known}
    topics, pattern, assigned = _selection(taken)
    version, finished_by = _backup(taken)
    return TableOptions(
        repo=_repo(taken.get("repo"), given.get("path")),
        source=taken.get("source"),
        backup=version,
        finished_by=finished_by,
        topics=topics,
        pattern=pattern,
        assigned=assigned,
        start=_range_end(taken, "starting", EARLIEST, "earliest"),
        end=_range_end(taken, "ending", LATEST, "latest"),
        late_start_is_end=_one_of(taken, "startingOffsetsByTimestampStrategy", ("error", "latest")) == "latest",
        min_partitions=_number(taken, "minPartitions", 1) if "minPartitions" in taken else 0,
        fail_on_data_loss=_flag(taken, "failOnDataLoss", default=True),
        isolation=isolation,
        pushdown=_flag(taken, "pushdown"),
        columns=_columns(taken),
    )


def _unknown(name: str, known: Mapping[str, str]) -> UsageError:
    if any(word in name for word in _SECRET_WORDS):
        return UsageError(
            f"{name} is not an option: credentials never are",
            remedy="put them into the environment of Spark's processes, as for the command line",
        )
    near = [known[each] for each in difflib.get_close_matches(name, known, 3)]
    return UsageError(
        f"{name} is not an option of the format logkeep",
        remedy=f"did you mean {' or '.join(near)}?" if near else f"it has: {', '.join(known.values())}",
    )


def _repo(option: str | None, path: str | None) -> str:
    if option and path and option != path:
        raise UsageError("the repository is named twice, by load() and by the option repo", remedy="leave one out")
    if not (option or path):
        raise UsageError("no repository is named", remedy='add .option("repo", "s3://bucket/prefix")')
    return option or path or ""


def _isolation(given: Mapping[str, str]) -> Isolation:
    """`isolation` decides, then `kafka.isolation.level`, which a job may have for Spark's Kafka source."""
    level = given.get("kafka.isolation.level", "read_committed").lower()
    if level not in {"read_committed", "read_uncommitted"}:
        raise UsageError(f"kafka.isolation.level is {level!r}", remedy="use read_committed or read_uncommitted")
    default = "committed" if level == "read_committed" else "all"
    wanted = _one_of({"isolation": given.get("isolation", default)}, "isolation", ("committed", "all"))
    return "all" if wanted == "all" else "committed"


def _backup(taken: Mapping[str, str]) -> tuple[str, datetime | None]:
    version, moment = taken.get("versionAsOf"), taken.get("timestampAsOf")
    if version is not None and moment is not None:
        raise UsageError("versionAsOf and timestampAsOf name two backups", remedy="leave one out")
    return version or "latest", _time(moment) if moment is not None else None


def _time(text: str) -> datetime:
    """ISO 8601; without a zone it is UTC, which does not depend on the machine that plans the query."""
    try:
        found = datetime.fromisoformat(text.strip())
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"timestampAsOf is no time: {text!r}", remedy="write 2026-11-14T02:00:00Z; without a zone it is UTC"
        ) from error


def _selection(
    taken: Mapping[str, str],
) -> tuple[tuple[str, ...], str | None, Mapping[str, frozenset[int]] | None]:
    given = [name for name in _SELECTIONS if name in taken]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} cannot be given together", remedy="leave one out")
    topics = tuple(name.strip() for name in taken.get("subscribe", "").split(",") if name.strip())
    if "subscribe" in taken and not topics:
        raise UsageError("subscribe names no topic", remedy="write topics with commas between them")
    assigned = _assigned(taken["assign"]) if "assign" in taken else None
    return tuple(dict.fromkeys(topics)), taken.get("subscribePattern"), assigned


def _assigned(text: str) -> Mapping[str, frozenset[int]]:
    form = 'write {"topic": [0, 1]}'
    found = _document("assign", text, form)
    if not all(isinstance(some, list) and all(_is_number(n) for n in some) for some in found.values()) or not found:
        raise UsageError(f"assign is {text!r}", remedy=form)
    return {topic: frozenset(some) for topic, some in found.items()}


def _range_end(taken: Mapping[str, str], which: Literal["starting", "ending"], default: int, word: str) -> RangeEnd:
    """Where reading begins or ends. As in Spark's Kafka source, a time for all partitions wins over times of each, and
    those win over offsets."""
    if f"{which}Timestamp" in taken:
        return RangeEnd(_number(taken, f"{which}Timestamp", 0), is_time=True)
    if (text := taken.get(f"{which}OffsetsByTimestamp")) is not None:
        return RangeEnd(default, _numbers(f"{which}OffsetsByTimestamp", text), is_time=True)
    text = taken.get(f"{which}Offsets", word).strip()
    if text.lower() == word:
        return RangeEnd(default)
    if text.lower() in {"earliest", "latest"}:
        raise UsageError(f"{which}Offsets cannot be {text}", remedy=f"use {word}, or a number for each partition")
    each = _numbers(f"{which}Offsets", text)
    other = LATEST if default == EARLIEST else EARLIEST
    for topic, some in each.items():
        for partition, offset in some.items():
            if offset == other or offset < EARLIEST:
                raise UsageError(
                    f"{which}Offsets has {offset} for {topic}/{partition}",
                    remedy=f"use an offset, or {default}: {word}",
                )
    return RangeEnd(default, each)


def _numbers(name: str, text: str) -> TopicPartitions:
    form = f'{name} is JSON: {{"topic": {{"0": 23, "1": -2}}}}'
    found = _document(name, text, form)
    for some in found.values():
        if not isinstance(some, dict) or not all(p.isdecimal() and _is_number(n) for p, n in some.items()):
            raise UsageError(f"{name} is {text!r}", remedy=form)
    return {topic: {int(partition): number for partition, number in some.items()} for topic, some in found.items()}


def _document(name: str, text: str, form: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is not JSON: {error}", remedy=form) from error
    if not isinstance(found, dict):
        raise UsageError(f"{name} is {text!r}", remedy=form)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _number(taken: Mapping[str, str], name: str, least: int) -> int:
    text = taken[name].strip()
    if not text.isdecimal() or len(text) > 19 or not least <= int(text) < 2**63:
        raise UsageError(f"{name} is {text[:40]!r}", remedy=f"use a whole number of at least {least}")
    return int(text)


def _flag(taken: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    return _one_of({name: taken.get(name, str(default))}, name, ("false", "true")) == "true"


def _one_of(taken: Mapping[str, str], name: str, words: tuple[str, ...]) -> str:
    text = taken.get(name, words[0]).strip().lower()
    if text not in words:
        raise UsageError(f"{name} is {text!r}", remedy=f"use {' or '.join(words)}")
    return text


def _columns(taken: Mapping[str, str]) -> tuple[str, ...]:
    """All but the headers, which `includeHeaders` adds, and those that `decode` adds; or those that `columns` lists."""
    decoded = tuple(DECODED) if _flag(taken, "decode") else ()
    if "columns" not in taken:
        return (*(COLUMNS if _flag(taken, "includeHeaders") else TableOptions.columns), *decoded)
    if "includeHeaders" in taken:
        raise UsageError("columns and includeHeaders exclude each other", remedy="add headers to columns")
    known = (*COLUMNS, *DECODED)
    spelt = {name.lower(): name for name in known}
    wanted = [name.strip().lower() for name in taken["columns"].split(",")]
    if wrong := [name for name in wanted if name not in spelt]:
        raise UsageError(f"there is no column {wrong[0]!r}", remedy=f"the columns are: {', '.join(known)}")
    return tuple(dict.fromkeys((*(spelt[name] for name in wanted), *decoded)))
