"""Metrics for Prometheus, in a file for node_exporter's textfile collector.

One file may serve several sources and verbs: an update reads the file and replaces only the values of this run, under a
lock, so that two runs that end together lose nothing. The file is replaced in one step and has mode 0644, because the
collector runs as another user and nothing in it is secret. A file with other content is left alone.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from logkeep.errors import ConfigError

_PREFIXES = ("logkeep_", "zkbackup_")
_LARGEST = 16 * 1024 * 1024


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
        self._read()

    def update(self, samples: Iterable[MetricSample]) -> None:
        """Replace values with the same labels, add to counters, keep all others. Raises ConfigError."""
        try:
            with _only_writer(self.path.parent):
                earlier = {s.key: s for s in self._read()}
                merged = earlier | {s.key: s.after(earlier.get(s.key)) for s in samples}
                self._write(render(merged.values()))
        except OSError as error:
            raise self._error(f"the metrics file cannot be written: {error.strerror}") from error

    def _read(self) -> list[MetricSample]:
        try:
            with self.path.open("rb") as file:
                text = file.read(_LARGEST + 1).decode()
            if len(text) > _LARGEST:
                raise ValueError("too large")  # noqa: TRY301  handled like other content
            return parse(text)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._error(f"the metrics file cannot be read: {error.strerror}") from error
        except ValueError:
            raise self._error("this file has other content than Logkeep's metrics and was left alone") from None

    def _write(self, text: str) -> None:
        # The collector reads only *.prom, so it never sees a half-written draft.
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        try:
            with draft.open("w", encoding="utf-8") as file:
                os.fchmod(file.fileno(), 0o644)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.path)
        finally:
            draft.unlink(missing_ok=True)

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
def _only_writer(directory: Path) -> Iterator[None]:
    """A lock on the directory itself: it needs no lock file, and the system releases it when the process ends."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
