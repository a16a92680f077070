"""Names in datasets of Avro and Parquet files. Pure.

topics/<topic>/partition=<p>/<topic>+<p>-<first offset, 20 digits><ending>
topics/<topic>/partition=<p>/_empty      a partition without records yet; Spark and others skip names with `_`
"""

import re

from logkeep.kafka.record.dataset_document import DatasetLog

TOPICS = "topics/"
EMPTY = "_empty"
_PARTITION = re.compile(r"topics/([^/]+)/partition=([0-9]{1,10})/([^/]+)")
_FILE = re.compile(r"(.+)\+([0-9]{1,10})-([0-9]{20})")


def folder(log: DatasetLog) -> str:
    return f"{TOPICS}{log.topic}/partition={log.partition}/"


def file_name(log: DatasetLog, first_offset: int, ending: str) -> str:
    return f"{folder(log)}{log.topic}+{log.partition}-{first_offset:020}{ending}"


def log_of(name: str, ending: str) -> DatasetLog | None:
    """The partition that a file, or the mark of an empty partition, belongs to; None for other names."""
    found = _PARTITION.fullmatch(name)
    if found is None:
        return None
    log = DatasetLog(found[1], int(found[2]))
    return log if found[3] == EMPTY or first_offset_of(name, log, ending) is not None else None


def first_offset_of(name: str, log: DatasetLog, ending: str) -> int | None:
    """The first offset in the name of a file; None if it is no file of this partition."""
    leaf = name.removeprefix(folder(log))
    found = _FILE.fullmatch(leaf.removesuffix(ending)) if leaf.endswith(ending) else None
    return int(found[3]) if found and (found[1], found[2]) == (log.topic, str(log.partition)) else None
