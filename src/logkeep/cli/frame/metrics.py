"""What a run tells Prometheus, through node_exporter's textfile collector.

One file may serve several sources and verbs: what the file already holds is read back and only the values of this run
are replaced, under a lock, so that two runs that end together lose nothing. The file appears whole or not at all and
has mode 0644: the collector runs as another user, and nothing in it is secret. A file that is not ours is left alone.
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
    """One line of the reference. Gauges tell the last run; counters count the runs that wrote this file."""

    name: str
    help: str
    counts: bool = False


_TABLE = (
    Metric("logkeep_backup_duration_seconds", "How long the last backup took."),
    Metric("logkeep_backup_size_bytes", "Bytes that the last backup covers."),
    Metric("logkeep_backup_file_count", "Segments and snapshots that the last backup covers."),
    Metric("logkeep_backup_corruption_count", "Damaged pieces that the last backup met in its source."),
    Metric("logkeep_backup_success", "1 when the last backup was completed, 0 when it failed."),
    Metric("logkeep_backup_last_success_timestamp_seconds", "When the last completed backup ended (Unix time)."),
    Metric(
        "logkeep_backup_lag_offsets", "Offsets that the source had beyond the archive at the end of the last round."
    ),
    Metric("logkeep_backup_lag_bytes", "About how many bytes these are."),
    Metric("logkeep_verify_duration_seconds", "How long the last verification took."),
    Metric("logkeep_verify_valid_files", "Objects that the last verification found right."),
    Metric("logkeep_verify_corrupted_files", "Objects that the last verification found damaged or missing."),
    Metric("logkeep_verify_repaired_files", "Objects that the last verification repaired."),
    Metric("logkeep_verify_last_success_timestamp_seconds", "When a verification last found no damage (Unix time)."),
    Metric("logkeep_restore_duration_seconds", "How long the last restore took."),
    Metric("logkeep_restore_file_count", "Segments and snapshots that the last restore read."),
    Metric("logkeep_restore_success", "1 when the last restore was proven, 0 when it failed."),
    Metric("logkeep_restore_last_success_timestamp_seconds", "When the last proven restore ended (Unix time)."),
    Metric("logkeep_restore_records", "Records that the last restore brought back."),
    Metric("logkeep_restore_size_bytes", "Bytes of them in the target."),
    Metric("logkeep_drill_success", "1 when the last restore drill was proven, 0 when it failed."),
    Metric(
        "logkeep_drill_recovery_seconds", "How long the last proven drill took: the recovery time that was reached."
    ),
    Metric("logkeep_drill_last_success_timestamp_seconds", "When the last proven drill ended (Unix time)."),
    Metric("zkbackup_backup_duration_seconds", "How long the last backup by zkbackup took."),
    Metric("zkbackup_backup_size_bytes", "Plain bytes in the last backup by zkbackup."),
    Metric("zkbackup_backup_file_count", "Snapshots and logs in the last backup by zkbackup."),
    Metric("zkbackup_backup_corruption_count", "Damaged files that the last backup by zkbackup met."),
    Metric("zkbackup_backup_success", "1 when the last backup by zkbackup was completed with nothing lost or damaged."),
    Metric("zkbackup_backup_success_total", "Backups by zkbackup that were completed.", counts=True),
    Metric("zkbackup_backup_failure_total", "Backups by zkbackup that failed.", counts=True),
    Metric("zkbackup_restore_duration_seconds", "How long the last restore by zkbackup took."),
    Metric("zkbackup_restore_file_count", "Files that the last restore by zkbackup read."),
    Metric("zkbackup_restore_success", "1 when the last restore by zkbackup was proven, 0 when it failed."),
    Metric("zkbackup_verify_duration_seconds", "How long the last verification by zkbackup took."),
    Metric("zkbackup_verify_valid_files", "Files that it found right."),
    Metric("zkbackup_verify_corrupted_files", "Files that it found damaged or missing."),
    Metric("zkbackup_verify_repaired_files", "Files that it repaired."),
)
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _TABLE}


@dataclass(frozen=True)
class MetricSample:
    """One value. The source is the label that every metric has."""

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        return self.name, tuple(sorted(self.labels.items()))

    def after(self, earlier: "MetricSample | None") -> "MetricSample":
        """What the file says now: a counter goes on from what it said before."""
        known = METRICS.get(self.name)
        if earlier is None or known is None or not known.counts:
            return self
        return MetricSample(self.name, earlier.value + self.value, self.labels)


def sample(name: str, value: float, *, source: str) -> MetricSample:
    """A value of a declared metric. Raises KeyError for one that the reference does not know."""
    return MetricSample(METRICS[name].name, float(value), {"source": source})


class MetricsFile:
    """The file behind `--metrics-file`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def check(self) -> None:
        """Raise ConfigError now, rather than after hours of work, when the file could not be updated later."""
        if not os.access(self.path.parent, os.W_OK | os.X_OK):
            raise self._error("the metrics file's directory is not there or not writable")
        self._read()

    def update(self, samples: Iterable[MetricSample]) -> None:
        """Put these values in place of earlier ones with the same labels, add to counters; keep all others.

        Raises ConfigError.
        """
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
            return parse(text) if len(text) <= _LARGEST else _refuse()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._error(f"the metrics file cannot be read: {error.strerror}") from error
        except ValueError:
            raise self._error("this file holds something else than Logkeep's metrics and was left as it is") from None

    def _write(self, text: str) -> None:
        # The collector reads *.prom only, so a half-written neighbour is never seen.
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


def _refuse() -> list[MetricSample]:
    raise ValueError("too large")


def parse(text: str) -> list[MetricSample]:
    """Read Logkeep's own values back. Raises ValueError when the text holds anything else."""
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
    """The text exposition format, sorted, so that equal values are equal bytes."""
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
    """A lock on the directory itself: it leaves no file behind, and ends with the process whatever happens."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
