"""Metrics of each command: with zkbackup's own names, and with the names of `logkeep` and the server as source."""

from collections.abc import Mapping

from logkeep.cli.frame.metrics import METRICS, MetricSample

_DAMAGED, _LOST = 10, 21


def backup_samples(
    source: str,
    *,
    took_s: float,
    ended_s: float,
    size_bytes: int,
    files: int,
    damaged: int,
    code: int = 0,
    restorable: bool = True,
) -> tuple[MetricSample, ...]:
    """`code`: the exit code; `restorable`: the end of the backup can be restored.

    For zkbackup's own metrics lost transactions are a failure. For those of `logkeep` a backup with gaps was completed,
    and its exit code reports the gaps.
    """
    whole, completed = code not in {_DAMAGED, _LOST}, restorable and code != _DAMAGED
    values: dict[str, float] = {
        "backup_duration_seconds": took_s,
        "backup_size_bytes": size_bytes,
        "backup_file_count": files,
        "backup_corruption_count": damaged,
    }
    own = {
        "backup_success": int(whole),
        "backup_success_total": int(whole),
        "backup_failure_total": int(not whole),
    }
    logkeep = {"backup_success": int(completed)} | (
        {"backup_last_success_timestamp_seconds": ended_s} if completed else {}
    )
    return (*_own(values | own), *_logkeep(source, values | logkeep))


def backup_failed(took_s: float) -> tuple[MetricSample, ...]:
    """Without a source, because the name of the server may be what was wrong."""
    values = {"backup_duration_seconds": took_s, "backup_success": 0, "backup_success_total": 0}
    return _own({**values, "backup_failure_total": 1})


def restore_samples(source: str, *, took_s: float, ended_s: float, files: int) -> tuple[MetricSample, ...]:
    values = {
        "restore_duration_seconds": took_s,
        "restore_file_count": files,
        "restore_success": 1,
        "restore_last_success_timestamp_seconds": ended_s,
    }
    return _samples(source, values)


def restore_failed(took_s: float) -> tuple[MetricSample, ...]:
    return _own({"restore_duration_seconds": took_s, "restore_success": 0})


def verify_samples(
    source: str, *, took_s: float, ended_s: float, valid: int, damaged: int, repaired: int, whole: bool = True
) -> tuple[MetricSample, ...]:
    """`whole`: no damage is known at all, neither outside of files nor from an earlier, deeper verification."""
    values = {
        "verify_duration_seconds": took_s,
        "verify_valid_files": valid,
        "verify_corrupted_files": damaged,
        "verify_repaired_files": repaired,
    }
    if whole and not damaged:
        values["verify_last_success_timestamp_seconds"] = ended_s
    return _samples(source, values)


def _samples(source: str, values: Mapping[str, float]) -> tuple[MetricSample, ...]:
    return (*_own(values), *_logkeep(source, values))


def _logkeep(source: str, values: Mapping[str, float]) -> tuple[MetricSample, ...]:
    logkeep = (MetricSample(f"logkeep_{name}", value, {"source": source}) for name, value in values.items())
    return tuple(sample for sample in logkeep if sample.name in METRICS)


def _own(values: Mapping[str, float]) -> tuple[MetricSample, ...]:
    own = (MetricSample(f"zkbackup_{name}", float(value)) for name, value in values.items())
    return tuple(sample for sample in own if sample.name in METRICS)
