"""Opens what the settings name: the repository with its store, the source, the engine."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from logkeep.cli.frame import exit_codes
from logkeep.cli.frame.execute import Run
from logkeep.config.options import (
    ENGINE,
    LIMIT_DOWNLOAD,
    LIMIT_UPLOAD,
    MASTER,
    PARALLEL,
    PROGRESS,
    REPO,
    RETRY_FOR,
    SOURCE,
    SPARK_CONF,
    SPARK_SECRET,
    STATE_DIR,
    VERBOSE,
)
from logkeep.errors import UsageError
from logkeep.model.work import Engine, NoProgress, ProgressSink
from logkeep.repository.access import Repository, open_repository
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.layout import FORMAT
from logkeep.repository.restores import state_place
from logkeep.store.access import local_root, open_store
from logkeep.store.base import Store
from logkeep.store.readonly import ReadOnlyStore
from logkeep.store.throttled import ThrottledStore, TokenBucket

if TYPE_CHECKING:
    from logkeep.engine.spark.engine import SparkEngine
    from logkeep.engine.stop import SignalStop

INLINE_BELOW = 64 * 1024 * 1024
"""Reading fewer bytes than this is quicker than starting Spark."""

STORE_EXITS = exit_codes.STORE_EXITS


def opened_store(run: Run, url: str) -> Store:
    """The store at a URL, with the bandwidth limits and retries of the settings."""
    from logkeep.store.retrying import RetryingStore, RetryLimits  # noqa: PLC0415 - `--help` needs no retries

    store = open_store(url)
    upload, download = run[LIMIT_UPLOAD], run[LIMIT_DOWNLOAD]
    if upload or download:
        store = ThrottledStore(
            store, (upload and TokenBucket(upload)) or None, (download and TokenBucket(download)) or None
        )
    return RetryingStore(store, RetryLimits(total_s=run[RETRY_FOR].total_seconds()))


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


def chosen_engine(run: Run, total_bytes: int, stop: "SignalStop | None" = None) -> Engine:
    """Spark for large work, this process for small work (one unit at a time), unless the settings name the engine.

    A run of many rounds passes a `stop`, so that signals are also handled between its rounds.
    """
    refuse_contradictions(run)
    if runs_inline(run, total_bytes):
        from logkeep.engine.inline import InlineEngine  # noqa: PLC0415 - a run needs only one of the two

        return InlineEngine(sink=_inline_sink(run, stop), stop=stop)
    return spark_engine(run, stop)


def spark_engine(run: Run, stop: "SignalStop | None" = None) -> "SparkEngine":
    """The command's one Spark engine, for all of its phases: Spark cannot run two sessions in one process.

    Raises UsageError with --engine inline.
    """
    if run[ENGINE] == "inline":
        raise UsageError("this needs Spark, but --engine is inline", remedy="leave --engine out; Spark needs Java 17")
    refuse_contradictions(run)
    if run.world.spark is None:
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
    return SparkEngine(settings, sink=run.progress(), stop=stop, directories=run.world.directories)


def use_directories(run: Run, *paths: Path, written: bool = False, file: str = "") -> None:
    """Name local directories that units of this command use, before the engine runs any: see `SharedDirectory`."""
    from logkeep.engine.spark.directories import SharedDirectory  # noqa: PLC0415 - as above

    run.world.directories += [SharedDirectory(path.absolute(), written, file) for path in paths]


def _master(run: Run) -> str:
    return run[MASTER] or f"local[{run[PARALLEL] or '*'}]"


class WarmEngines:
    """Engines for a run of many rounds: small rounds run in this process, large ones on one Spark that stays up."""

    def __init__(self, run: Run, stop: "SignalStop | None" = None) -> None:
        self._run, self._stop = run, stop

    def __call__(self, total_bytes: int) -> Engine:
        return chosen_engine(self._run, total_bytes, self._stop)

    def renew(self) -> None:
        """Close Spark after a failed task, as it may be broken; the next large round starts it again."""
        if self._run.world.spark is not None:
            self._run.world.spark.close()


def runs_inline(run: Run, total_bytes: int) -> bool:
    kind = run[ENGINE]
    return kind == "inline" or (kind == "auto" and run[MASTER] is None and total_bytes < INLINE_BELOW)


def _inline_sink(run: Run, stop: "SignalStop | None") -> ProgressSink:
    """In a run of many rounds each small round prints its own line, and no progress bar."""
    return run.progress() if stop is None or run[PROGRESS] == "always" else NoProgress()
