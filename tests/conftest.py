"""What every test process needs, and the order in which tests are given to the workers."""

import gc
import logging
import os
import re
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from logkeep.repository.chain import lease

# A test run that a script started in the background ignores Ctrl-C, and so would every process that it starts: then
# nothing that is interrupted on purpose would notice.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says something about the machine, not about the code. `make soak` tries 400.
settings.register_profile("logkeep", deadline=None, max_examples=int(os.environ.get("LOGKEEP_EXAMPLES", "40")))
settings.load_profile("logkeep")

# Seconds that groups of tests took, measured or estimated on two busy cores. The longest are given out first, so that
# all workers end at about the same time.
_SECONDS = {
    "kafka-restore": 450,
    "kafka-plain": 260,
    "kafka-replay": 200,
    "spark": 160,
    "kafka-older": 150,
    "kafka-three": 150,
    "kafka-proxy": 140,
    "kafka-secured": 120,
    "spark-cluster": 115,
    "demo": 80,
    "zookeeper-verbs": 80,
    "s3-locked": 70,
    "kafka-embedded": 60,
    "zookeeper-e2e": 60,
    "zookeeper-restore": 60,
    "zookeeper-restored-ensemble": 60,
    "canary": 55,
    "zookeeper-damage": 55,
    "zookeeper-ensemble": 50,
    "zookeeper-matrix": 50,
}
_A_GROUP_S = 40
"""A group that the table does not have."""
_PAGES_S = {
    "sql.md": 130,
    "README.md": 60,
    "kafka-restore.md": 55,
    "kafka-backup.md": 45,
    "kafka-restore-elsewhere.md": 45,
}
_A_PAGE_S = 30
"""Any other page of the guides. Other single tests come last: they fill the time that is left."""
_PAGE = re.compile(r"test_commands_do_what_the_page_says\[([\w.-]+)")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Longest first, where several workers share the tests (`make test` passes --no-loadscope-reorder)."""
    if getattr(config.option, "loadgroup", False):
        items.sort(key=_place)


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: neither the collector nor a forked child need touch it."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Frozen objects are never freed, and DuckDB's binding reports each of its own that is left at the exit."""
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Servers end with their group: an idle broker takes a twentieth of a core, and ten of them half a core."""
    yield
    logging.getLogger("logkeep").setLevel(logging.NOTSET)  # a command that was executed in this process set them
    logging.getLogger().setLevel(logging.WARNING)
    # Many tests count their runs from 1: runs, repositories and versions of the next test have the same names.
    lease._unreleased.clear()
    lease._watched.clear()
    if nextitem is not None and _group(item) and _group(item) != _group(nextitem):
        _finish_shared_fixtures(item)


def _finish_shared_fixtures(item: pytest.Item) -> None:
    """Fixtures of our own with the scope of a session; a later test that needs one makes it anew."""
    for same_name in list(item.session._fixturemanager._arg2fixturedefs.values()):
        for fixture in same_name:
            if fixture.scope == "session" and fixture.baseid.startswith("tests") and fixture.cached_result is not None:
                fixture.finish(item._request)  # type: ignore[attr-defined]  # of a function's item, as all of ours are


def _group(item: pytest.Item) -> str:
    return "_".join(sorted(str(mark.args[0]) for mark in item.iter_markers("xdist_group")))


def _place(item: pytest.Item) -> tuple[int, str]:
    if name := _group(item):
        return -_SECONDS.get(name, _A_GROUP_S), name
    page = _PAGE.match(item.name)
    return -_PAGES_S.get(page[1], _A_PAGE_S) if page else 0, ""
