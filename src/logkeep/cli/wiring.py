"""Opens what the settings name: the repository with its store, the source, the engine."""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from logkeep.cli.frame import exit_codes
from logkeep.cli.frame.execute import Run
from logkeep.config.options import (
    ENGINE,
    LIMIT_DOWNLOAD,
    LIMIT_PRODUCE,
    LIMIT_UPLOAD,
    MASTER,
    PARALLEL,
    PROGRESS,
    REPO,
    RETRY_FOR,
    SEGMENT_BYTES,
    SOURCE,
    SPARK_CONF,
    SPARK_SECRET,
    STATE_DIR,
    VERBOSE,
    Options,
)
from logkeep.config.settings import SettingPlace
from logkeep.errors import EngineUnavailable, LogkeepError, UsageError
from logkeep.model.cache import archive_dir
from logkeep.model.findings import Finding, Severity
from logkeep.model.work import Engine, NoProgress, ProgressSink
from logkeep.repository.access import Repository, open_repository
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.layout import FORMAT
from logkeep.repository.restores import state_place
from logkeep.repository.restores.stored import StoredRestore
from logkeep.store.access import local_root, open_store
from logkeep.store.base import Store
from logkeep.store.readonly import ReadOnlyStore
from logkeep.store.throttled import ThrottledStore, TokenBucket

if TYPE_CHECKING:
    from logkeep.engine.auto import AutoEngine
    from logkeep.engine.choice import Circumstances
    from logkeep.engine.inline import InlineEngine
    from logkeep.engine.spark.engine import SparkEngine
    from logkeep.engine.speeds_file import SpeedsFile
    from logkeep.engine.stop import SignalStop
    from logkeep.store.retrying import RetryLimits

SPARK_UNAVAILABLE = "spark-unavailable"
LEAST_OBJECT_BYTES = 4096
STORE_EXITS = exit_codes.STORE_EXITS


def opened_store(run: Run, url: str) -> Store:
    """The store at a URL, with the bandwidth limits and retries of the settings."""
    from logkeep.store.retrying import RetryingStore  # noqa: PLC0415 - `--help` needs no retries

    store = open_store(url)
    upload, download = run[LIMIT_UPLOAD], run[LIMIT_DOWNLOAD]
    if upload or download:
        store = ThrottledStore(
            store, (upload and TokenBucket(upload)) or None, (download and TokenBucket(download)) or None
        )
    return RetryingStore(store, _retry_limits(run))


def _retry_limits(run: Run) -> "RetryLimits":
    """With a --retry-for of the user, a store that cannot be reached is retried like any other."""
    from logkeep.store.retrying import RetryLimits  # noqa: PLC0415 - as above

    limits = RetryLimits(total_s=run[RETRY_FOR].total_seconds())
    given = run.settings.origin(RETRY_FOR).place is not SettingPlace.DEFAULT
    return replace(limits, lasting_s=limits.first_contact_s) if given else limits


def opened_repository(run: Run, *, read_only: bool = False) -> Repository:
    """The repository that the settings name; prints its warnings. Verbs that write nothing open it `read_only`."""
    store = opened_store(run, run.repo())
    repository = open_repository(ReadOnlyStore(store) if read_only else store)
    for warning in repository.warnings:
        run.console.warn(warning)
    return repository


def chosen_source(run: Run, *, read_only: bool = False) -> SourceRef:
    """The source that the settings name, or the only one."""
    return opened_repository(run, read_only=read_only).choose(run[SOURCE])


def written_source(run: Run, first: str) -> SourceRef:
    """The source that a backup is written to: the one that the settings name, else the only one, else a new `first`."""
    repository, named = opened_repository(run), run[SOURCE]
    if named is not None:
        return repository.place(named)
    return repository.choose(None) if repository.sources() else repository.place(first)


def stored_options(run: Run, options: Options) -> dict[str, str]:
    """Those of these options that were chosen, as text for the stored plan of a restore."""
    values: dict[str, object] = {option.name: run.settings[option] for option in options}
    return {option.name: option.kind.show(value) for option in options if (value := values[option.name])}


def chosen_sources(run: Run) -> Sequence[SourceRef]:
    """The source that the settings name, or all of them; for reading only."""
    return sources_of(opened_repository(run, read_only=True), run)


def sources_of(repository: Repository, run: Run) -> Sequence[SourceRef]:
    """The source that the settings name, or all of the repository."""
    if run[SOURCE] is not None:
        return [repository.choose(run[SOURCE])]
    return [repository.place(name) for name in repository.sources()]


def restores_place(run: Run, place: SourceRef, *, create: bool = False) -> SourceRef:
    """Where plans and receipts of restores are stored: in the repository, or in the directory of --state-dir."""
    directory = run[STATE_DIR]
    return place if directory is None else state_place(place, directory, create=create)


def note_failed(run: Run, stored: StoredRestore, error: LogkeepError) -> None:
    """Store the failure. An error while storing must not hide why the restore failed."""
    try:
        stored.failed(error, "target")
    except LogkeepError as problem:
        run.console.warn(f"the receipt of restore {stored.id} cannot be stored: {problem}")


def object_bytes(run: Run) -> int:
    """The size of objects in a repository. Raises UsageError for one that is of use for a dataset only."""
    if run[SEGMENT_BYTES] < LEAST_OBJECT_BYTES:
        raise UsageError(f"--segment-bytes {run[SEGMENT_BYTES]} is too small", remedy="give at least 4KiB")
    return run[SEGMENT_BYTES]


def refuse_contradictions(run: Run) -> None:
    """Refuse engine options that exclude each other. Verbs that start the engine late call this early."""
    inline, master, parallel = run[ENGINE] == "inline", run[MASTER], run[PARALLEL]
    if inline and master is not None:
        raise UsageError("--master needs Spark, but --engine is inline", remedy="leave one of the two out")
    if inline and parallel is not None and parallel > 1:
        raise UsageError(
            f"--engine inline runs one unit at a time, but --parallel is {parallel}",
            remedy="leave --parallel out, or use --engine spark",
        )
    if master is not None and parallel is not None:
        raise UsageError(
            "--parallel is for Spark on this machine; with --master the master decides how much runs in parallel",
            remedy=f"leave --parallel out; use --master local[{parallel}], or on a cluster "
            f"--spark-conf spark.cores.max={parallel}",
        )
    if not inline:
        from logkeep.engine.spark.protection import protection  # noqa: PLC0415 - as below

        conf: tuple[tuple[str, str], ...] = run[SPARK_CONF]
        protection(_master(run), dict(conf), secret_named=run[SPARK_SECRET] is not None)


def chosen_engine(run: Run, total_bytes: int, stop: "SignalStop | None" = None, work: str = "") -> Engine:
    """The engine that the settings name; with `auto` the faster one, for each piece of work.

    `work` is the label of the main work and `total_bytes` its size. A run of many rounds passes a `stop`, so that
    signals are also handled between its rounds.
    """
    refuse_contradictions(run)
    if run[ENGINE] == "auto" and run[MASTER] is None:
        return _auto_engine(run, total_bytes, stop, work)
    return _inline_engine(run, stop) if run[ENGINE] == "inline" else spark_engine(run, stop)


def expect_work(run: Run, total_bytes: int, unit_bytes: int, work: str) -> None:
    """Start Spark in the background, if `auto` is likely to need it for this work, which is not planned yet."""
    if run[ENGINE] == "auto" and run[MASTER] is None:
        _auto_engine(run, total_bytes, None, work).expect(-(-total_bytes // unit_bytes))


def _inline_engine(run: Run, stop: "SignalStop | None") -> "InlineEngine":
    from logkeep.engine.inline import InlineEngine  # noqa: PLC0415 - a run needs only one of the two

    return InlineEngine(sink=_inline_sink(run, stop), stop=stop, speeds=_measured(run))


def _auto_engine(run: Run, total_bytes: int, stop: "SignalStop | None", work: str) -> "AutoEngine":
    from logkeep.engine.auto import AutoEngine, EngineChoice  # noqa: PLC0415 - as above

    return AutoEngine(
        _inline_engine(run, stop),
        lambda: spark_engine(run, stop),
        EngineChoice(_speeds(run), partial(_circumstances, run)),
        expected_bytes=total_bytes,
        expected_label=work,
        unavailable=partial(_note_unavailable, run),
        sink=run.progress(),
        stop=stop,
        limited=_limit(run) is not None,
    )


def _circumstances(run: Run) -> "Circumstances":
    from logkeep.engine.choice import Circumstances  # noqa: PLC0415 - as above
    from logkeep.engine.spark.jvm.class_archive import has_archive  # noqa: PLC0415
    from logkeep.engine.spark.settings import tasks_at_once  # noqa: PLC0415

    cores = len(os.sched_getaffinity(0))
    failed = any(finding.code == SPARK_UNAVAILABLE for finding in run.world.findings)
    return Circumstances(
        workers=0 if failed else tasks_at_once(_master(run), cores, cores),
        started=run.world.spark is not None and run.world.spark.running,
        archive=has_archive(archive_dir(run.cache)),
        bytes_per_s=_limit(run),
    )


def _note_unavailable(run: Run, error: EngineUnavailable) -> None:
    finding = Finding(
        code=SPARK_UNAVAILABLE,
        severity=Severity.WARNING,
        where="engine",
        what=f"Spark could not start, so this process did all work: {error}",
        remedy=error.remedy,
    )
    run.world.findings.append(finding)
    run.console.warn(f"{finding.what}; {finding.remedy}")


def _limit(run: Run) -> int | None:
    """The lowest of the user's limits of bytes per second."""
    return min((limit for each in (LIMIT_DOWNLOAD, LIMIT_UPLOAD, LIMIT_PRODUCE) if (limit := run[each])), default=None)


def _speeds(run: Run) -> "SpeedsFile":
    """What was measured on this machine, read once for each command."""
    from logkeep.engine.speeds_file import SpeedsFile  # noqa: PLC0415 - as above

    if run.world.speeds is None:
        scheme, separator, _ = (run[REPO] or "").partition("://")
        run.world.speeds = SpeedsFile(run.cache, scheme if separator else "file")
        run.closing(run.world.speeds.save)
    return run.world.speeds


def _measured(run: Run) -> "SpeedsFile | None":
    """Where an engine notes its speed: nowhere, if the user limits it."""
    return _speeds(run) if _limit(run) is None else None


def spark_engine(run: Run, stop: "SignalStop | None" = None) -> "SparkEngine":
    """The command's one Spark engine, for all of its phases: Spark cannot run two sessions in one process.

    Raises UsageError with --engine inline.
    """
    if run[ENGINE] == "inline":
        raise UsageError("this needs Spark, but --engine is inline", remedy="leave --engine out; Spark needs Java 17")
    refuse_contradictions(run)
    if run.world.spark is None:
        _speeds(run)  # saved after Spark has ended
        run.world.spark = _new_spark_engine(run, stop)
        run.closing(run.world.spark.close)
    return run.world.spark


def _new_spark_engine(run: Run, stop: "SignalStop | None") -> "SparkEngine":
    from logkeep.engine.spark.engine import SparkEngine  # noqa: PLC0415 - pyspark takes half a second to load
    from logkeep.engine.spark.protection import unauthenticated, unauthenticated_finding  # noqa: PLC0415
    from logkeep.engine.spark.settings import SparkSettings  # noqa: PLC0415

    pairs: tuple[tuple[str, str], ...] = run[SPARK_CONF]
    master, conf = _master(run), dict(pairs)
    if unauthenticated(master, conf):
        finding = unauthenticated_finding(master)
        run.world.findings.append(finding)
        run.console.warn(f"{finding.where}: {finding.what}; {finding.remedy}")
    secret = run.settings.secret(SPARK_SECRET)
    settings = SparkSettings(run.cache, master, conf, secret, keep_log=run[VERBOSE] > 0)
    if (root := local_root(run[REPO] or "")) is not None:
        use_directories(run, root, file=FORMAT)
    directories, limited = run.world.directories, _limit(run) is not None
    return SparkEngine(
        settings, sink=run.progress(), stop=stop, directories=directories, speeds=_measured(run), limited=limited
    )


def use_directories(run: Run, *paths: Path, written: bool = False, file: str = "") -> None:
    """Name local directories that units of this command use, before the engine runs any: see `SharedDirectory`."""
    from logkeep.engine.spark.directories import SharedDirectory  # noqa: PLC0415 - as above

    run.world.directories += [SharedDirectory(path.absolute(), written, file) for path in paths]


def _master(run: Run) -> str:
    return run[MASTER] or f"local[{run[PARALLEL] or '*'}]"


class WarmEngines:
    """Engines for a run of many rounds: small rounds run in this process, large ones on one Spark that stays up."""

    def __init__(self, run: Run, stop: "SignalStop | None" = None, work: str = "") -> None:
        self._run, self._stop, self._work = run, stop, work

    def __call__(self, total_bytes: int) -> Engine:
        return chosen_engine(self._run, total_bytes, self._stop, self._work)

    def renew(self) -> None:
        """Close Spark after a failed task, as it may be broken; the next large round starts it again."""
        if self._run.world.spark is not None:
            self._run.world.spark.close()


def _inline_sink(run: Run, stop: "SignalStop | None") -> ProgressSink:
    """In a run of many rounds each small round prints its own line, and no progress bar."""
    return run.progress() if stop is None or run[PROGRESS] == "always" else NoProgress()


def named_backup(backup: str | None, verb: str) -> str:
    """The id that the user typed. Raises UsageError: what replaces data never chooses a backup by itself."""
    if backup is None:
        raise UsageError("name the backup", remedy=f"`{verb} latest`, or an id that `logkeep list` shows")
    return backup
