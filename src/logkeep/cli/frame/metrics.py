"""Metrics for Prometheus, in a file for node_exporter's textfile collector.

One file may serve several sources and verbs: an update reads the file and replaces only the values of this run, under a
lock, so that two runs that end together lose nothing. The file is replaced in one step and has mode 0644, because the
collector runs as another user and nothing in it is secret. A file with other content is left alone.

The directory may belong to the collector's user. All work is done below one descriptor of it, in a draft with a random
name, so that no link leads us to another file. A directory that every user can write to is refused.
"""

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from logkeep.errors import ConfigError
from logkeep.file_owners import facts_of, who_can_write

_PREFIXES = ("logkeep_", "zkbackup_")
_LARGEST = 16 * 1024 * 1024
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Metric:
    """A declared metric. Gauges describe the last run; counters count the runs that wrote this file."""

    name: str
    help: str
    counts: bool = False


_TABLE = (
    Metric("logkeep_backup_duration_seconds", "How long the last backup took."),
    Metric("logkeep_backup_size_bytes", "Bytes that the last backup covers."),
    Metric("logkeep_backup_file_count", "Segments and snapshots that the last backup covers."),
    Metric("logkeep_backup_corruption_count", "Damaged pieces that the last backup found in its source."),
    Metric("logkeep_backup_success", "1 when the last backup was completed, 0 when it failed."),
    Metric("logkeep_backup_last_success_timestamp_seconds", "When the last completed backup ended (Unix time)."),
    Metric(
        "logkeep_backup_lag_offsets", "Offsets that the source had beyond the archive at the end of the last round."
    ),
    Metric("logkeep_backup_lag_bytes", "Estimated bytes of these offsets."),
    Metric("logkeep_backup_pause_seconds", "How long processing waited at most for the last backup of an application."),
    Metric(
        "logkeep_backup_unarchived_bytes",
        "Log of an application that waited for its last backup, in the partition with most; at --max-unarchived it is "
        "removed.",
    ),
    Metric("logkeep_verify_duration_seconds", "How long the last verification took."),
    Metric("logkeep_verify_valid_files", "Objects that the last verification found good."),
    Metric("logkeep_verify_corrupted_files", "Objects that the last verification found damaged or missing."),
    Metric("logkeep_verify_repaired_files", "Objects that the last verification repaired."),
    Metric("logkeep_verify_last_success_timestamp_seconds", "When a verification last found no damage (Unix time)."),
    Metric("logkeep_restore_duration_seconds", "How long the last restore took."),
    Metric("logkeep_restore_file_count", "Segments and snapshots that the last restore read."),
    Metric("logkeep_restore_success", "1 when the last restore was proven, 0 when it failed."),
    Metric("logkeep_restore_last_success_timestamp_seconds", "When the last proven restore ended (Unix time)."),
    Metric("logkeep_restore_records", "Records that the last restore wrote."),
    Metric("logkeep_restore_size_bytes", "Bytes of these records in the target."),
    Metric("logkeep_drill_success", "1 when the last restore drill was proven, 0 when it failed."),
    Metric("logkeep_drill_recovery_seconds", "How long the last proven drill took: the recovery time."),
    Metric("logkeep_drill_last_success_timestamp_seconds", "When the last proven drill ended (Unix time)."),
    Metric("zkbackup_backup_duration_seconds", "How long the last backup by zkbackup took."),
    Metric("zkbackup_backup_size_bytes", "Uncompressed bytes in the last backup by zkbackup."),
    Metric("zkbackup_backup_file_count", "Snapshots and logs in the last backup by zkbackup."),
    Metric("zkbackup_backup_corruption_count", "Damaged files that the last backup by zkbackup found."),
    Metric("zkbackup_backup_success", "1 when the last backup by zkbackup was completed with nothing lost or damaged."),
    Metric("zkbackup_backup_success_total", "Backups by zkbackup that were completed.", counts=True),
    Metric("zkbackup_backup_failure_total", "Backups by zkbackup that failed.", counts=True),
    Metric("zkbackup_restore_duration_seconds", "How long the last restore by zkbackup took."),
    Metric("zkbackup_restore_file_count", "Files that the last restore by zkbackup read."),
    Metric("zkbackup_restore_success", "1 when the last restore by zkbackup was proven, 0 when it failed."),
    Metric("zkbackup_verify_duration_seconds", "How long the last verification by zkbackup took."),
    Metric("zkbackup_verify_valid_files", "Files that the last verification by zkbackup found good."),
    Metric("zkbackup_verify_corrupted_files", "Files that the last verification by zkbackup found damaged or missing."),
    Metric("zkbackup_verify_repaired_files", "Files that the last verification by zkbackup repaired."),
)
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _TABLE}


@dataclass(frozen=True)
class MetricSample:
    """One value with its labels."""

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        return self.name, tuple(sorted(self.labels.items()))

    def after(self, earlier: "MetricSample | None") -> "MetricSample":
        """The new value in the file: a counter is added to its earlier value."""
        known = METRICS.get(self.name)
        if earlier is None or known is None or not known.counts:
            return self
        return MetricSample(self.name, earlier.value + self.value, self.labels)


def sample(name: str, value: float, *, source: str) -> MetricSample:
    """A value of a declared metric. Raises KeyError for an undeclared one."""
    return MetricSample(METRICS[name].name, float(value), {"source": source})


class MetricsFile:
    """The file of `--metrics-file`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def check(self) -> None:
        """Raise ConfigError before the work starts when the file could not be updated after it."""
        if not os.access(self.path.parent, os.W_OK | os.X_OK):
            raise self._error("the directory of the metrics file is missing or not writable")
        with self._reporting(), _opened(self.path.parent) as directory:
            self._refuse_shared(directory)
            self._read(directory)

    def update(self, samples: Iterable[MetricSample]) -> None:
        """Replace values with the same labels, add to counters, keep all others. Raises ConfigError."""
        with self._reporting(), _opened(self.path.parent) as directory:
            self._refuse_shared(directory)
            # On the directory itself: it needs no lock file, and the system releases it when the process ends.
            fcntl.flock(directory, fcntl.LOCK_EX)
            earlier = {s.key: s for s in self._read(directory)}
            merged = earlier | {s.key: s.after(earlier.get(s.key)) for s in samples}
            self._write(render(merged.values()), directory)

    def _refuse_shared(self, directory: int) -> None:
        if reason := who_can_write(facts_of(directory), "its directory"):
            remedy = "chmod g-w,o-w its directory, or set its sticky bit (chmod +t); or name another file"
            raise ConfigError(f"the metrics file is not written: {reason}", subject=str(self.path), remedy=remedy)

    def _read(self, directory: int) -> list[MetricSample]:
        try:
            # Neither a link nor a named pipe of another user may lead us elsewhere or block us.
            descriptor = os.open(self.path.name, _READ, dir_fd=directory)
        except FileNotFoundError:
            return []
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(_LARGEST + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b"?"
        try:
            if len(data) > _LARGEST:
                raise ValueError("too large")  # noqa: TRY301  handled like other content
            return parse(data.decode())
        except ValueError:
            raise self._error("this file has other content than Logkeep's metrics and was left alone") from None

    def _write(self, text: str, directory: int) -> None:
        # The collector reads only *.prom, so it never sees a half-written draft.
        draft = f".{self.path.name}.{secrets.token_hex(8)}.tmp"
        descriptor = os.open(draft, _NEW, 0o600, dir_fd=directory)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fchmod(descriptor, 0o644)
                os.fsync(descriptor)
            os.replace(draft, self.path.name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft, dir_fd=directory)
            raise

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            what = "is a symbolic link" if error.errno == errno.ELOOP else f"cannot be used: {error.strerror}"
            raise self._error(f"the metrics file {what}") from error

    def _error(self, what: str) -> ConfigError:
        return ConfigError(what, subject=str(self.path), remedy="name another file with --metrics-file")


def parse(text: str) -> list[MetricSample]:
    """Read Logkeep's own values. Raises ValueError when the text has other content."""
    from prometheus_client.parser import (  # noqa: PLC0415  slow to load, and only needed with --metrics-file
        text_string_to_metric_families,
    )

    found = [
        MetricSample(s.name, float(s.value), dict(s.labels))
        for family in text_string_to_metric_families(text)
        for s in family.samples
    ]
    if any(not s.name.startswith(_PREFIXES) for s in found) or (text.strip() and not found):
        raise ValueError("not our metrics")
    return found


def render(samples: Iterable[MetricSample]) -> str:
    """The text exposition format, sorted, so that equal values give equal bytes."""
    lines: list[str] = []
    last = ""
    for s in sorted(samples, key=lambda s: s.key):
        if s.name != last:
            known = METRICS.get(s.name)
            kind = "counter" if known and known.counts else "gauge"
            lines += [f"# HELP {s.name} {known.help if known else ''}".rstrip(), f"# TYPE {s.name} {kind}"]
            last = s.name
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in s.key[1])
        lines.append(f"{s.name}{{{labels}}} {s.value!r}" if labels else f"{s.name} {s.value!r}")
    return "".join(f"{line}\n" for line in lines)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
