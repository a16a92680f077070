"""From settings to things: the repository, its store with all wrappers, the source, the engine."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from logkeep.cli.frame.execute import Run
from logkeep.config.options import (
    ENGINE,
    LIMIT_DOWNLOAD,
    LIMIT_UPLOAD,
    MASTER,
    PARALLEL,
    PROGRESS,
    RETRY_FOR,
    SOURCE,
    SPARK_CONF,
    STATE_DIR,
    VERBOSE,
)
from logkeep.errors import UsageError
from logkeep.model.work import Engine, NoProgress, ProgressSink
from logkeep.repository.access import Repository, open_repository
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores import state_place
from logkeep.store.address import open_store
from logkeep.store.base import Store
from logkeep.store.retrying import RetryingStore, RetryLimits
from logkeep.store.throttled import ThrottledStore, TokenBucket

if TYPE_CHECKING:
    from logkeep.engine.spark.engine import SparkEngine
    from logkeep.engine.stop import SignalStop

INLINE_BELOW = 64 * 1024 * 1024
"""Starting Spark takes longer than reading this many bytes."""

STORE_EXITS = (41, 43, 51, 52)
"""What any verb that opens a repository can end with."""


def opened_store(run: Run, url: str) -> Store:
    """The store at a URL with what every verb wants around it: limits, and patience with passing trouble."""
    store = open_store(url)
    upload, download = run[LIMIT_UPLOAD], run[LIMIT_DOWNLOAD]
    if upload or download:
        store = ThrottledStore(
            store, (upload and TokenBucket(upload)) or None, (download and TokenBucket(download)) or None
        )
    return RetryingStore(store, RetryLimits(total_s=run[RETRY_FOR].total_seconds()))


def opened_repository(run: Run) -> Repository:
    """The repository that the settings name. What is odd but bearable is said at once."""
    repository = open_repository(opened_store(run, run.repo()))
    for warning in repository.warnings:
        run.console.warn(warning)
    return repository


def chosen_source(run: Run) -> SourceRef:
    """The source that the settings name, or the only one."""
    return opened_repository(run).choose(run[SOURCE])


def written_source(run: Run, first: str) -> SourceRef:
    """The source that a backup goes into: the one that is named, else the only one; `first` names the very first."""
    repository, named = opened_repository(run), run[SOURCE]
    if named is not None:
        return repository.place(named)
    return repository.choose(None) if repository.sources() else repository.place(first)


def chosen_sources(run: Run) -> Iterable[SourceRef]:
    """The source that the settings name, or all of them."""
    repository = opened_repository(run)
    if run[SOURCE] is not None:
        return [repository.choose(run[SOURCE])]
    return [repository.place(name) for name in repository.sources()]


def restores_place(run: Run, place: SourceRef, *, create: bool = False) -> SourceRef:
    """Where plans and receipts of restores are kept: in the repository, or in the directory of --state-dir."""
    directory = run[STATE_DIR]
    return place if directory is None else state_place(place, directory, create=create)


def refuse_contradictions(run: Run) -> None:
    """What is said about the engine must be possible together. Asked early by verbs that need one late."""
    inline, master, parallel = run[ENGINE] == "inline", run[MASTER], run[PARALLEL]
    if inline and master is not None:
        raise UsageError("--master needs Spark, and --engine says inline", remedy="leave one of the two out")
    if inline and parallel is not None and parallel > 1:
        raise UsageError(
            f"--engine inline does one unit after the other, and --parallel says {parallel}",
            remedy="leave --parallel out, or use --engine spark",
        )
    if master is not None and parallel is not None:
        raise UsageError(
            "--parallel is for Spark on this machine; with --master the master says how much runs at once",
            remedy=f"leave --parallel out, and write it into the master: local[{parallel}], or --spark-conf "
            f"spark.cores.max={parallel} on a cluster",
        )


def chosen_engine(run: Run, total_bytes: int, stop: "SignalStop | None" = None) -> Engine:
    """Spark for large work, this process for small work (one unit at a time), unless the user said which.

    With a `stop` of its own, a run that goes on hears signals between its rounds too.
    """
    refuse_contradictions(run)
    if runs_inline(run, total_bytes):
        from logkeep.engine.inline import InlineEngine  # noqa: PLC0415 - only one of the two is ever needed

        return InlineEngine(sink=_inline_sink(run, stop), stop=stop)
    return spark_engine(run, stop)


def spark_engine(run: Run, stop: "SignalStop | None" = None) -> "SparkEngine":
    """For what only Spark can do. Raises UsageError where the user said that there shall be none."""
    if run[ENGINE] == "inline":
        raise UsageError("this needs Spark, and --engine says inline", remedy="leave --engine out; Spark needs Java 17")
    refuse_contradictions(run)
    from logkeep.engine.spark.engine import SparkEngine  # noqa: PLC0415 - pyspark takes half a second to load
    from logkeep.engine.spark.settings import SparkSettings  # noqa: PLC0415

    master = run[MASTER] or f"local[{run[PARALLEL] or '*'}]"
    settings = SparkSettings(run.cache, master, _conf(run), keep_log=run[VERBOSE] > 0)
    engine = SparkEngine(settings, sink=run.progress(), stop=stop)
    run.closing(engine.close)
    return engine


class WarmEngines:
    """Engines for a run of many rounds: small rounds are worked on here, large ones on one Spark that stays."""

    def __init__(self, run: Run, stop: "SignalStop | None" = None) -> None:
        self._run, self._stop = run, stop
        self._spark: Engine | None = None

    def __call__(self, total_bytes: int) -> Engine:
        from logkeep.engine.inline import InlineEngine  # noqa: PLC0415 - as above

        if self._spark is not None and not runs_inline(self._run, total_bytes):
            return self._spark
        engine = chosen_engine(self._run, total_bytes, self._stop)
        self._spark = self._spark if isinstance(engine, InlineEngine) else engine
        return engine

    def renew(self) -> None:
        """A task failed for good, perhaps because its Spark is gone: the next large round starts another."""
        if self._spark is not None:
            self._spark.close()
            self._spark = None


def runs_inline(run: Run, total_bytes: int) -> bool:
    kind = run[ENGINE]
    return kind == "inline" or (kind == "auto" and run[MASTER] is None and total_bytes < INLINE_BELOW)


def _inline_sink(run: Run, stop: "SignalStop | None") -> ProgressSink:
    """A small round among many is told by its own line; a bar for each would be noise."""
    return run.progress() if stop is None or run[PROGRESS] == "always" else NoProgress()


def _conf(run: Run) -> dict[str, str]:
    pairs: tuple[tuple[str, str], ...] = run[SPARK_CONF]
    return dict(pairs)
