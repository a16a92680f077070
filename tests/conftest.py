"""What every test process needs, and the order in which tests are given to the workers."""

import signal

import pytest
from hypothesis import settings

# A test run that a script started in the background ignores Ctrl-C, and so would every process that it starts: then
# nothing that is interrupted on purpose would notice.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says something about the machine, not about the code.
settings.register_profile("logkeep", deadline=None)
settings.load_profile("logkeep")

# Estimates, not yet measured on a quiet machine, of the seconds that groups of tests take. The longest are given out
# first, so that both workers end at about the same time.
_SECONDS = {
    "spark-cluster": 300,
    "kafka-restore": 250,
    "kafka-plain": 180,
    "zookeeper-verbs": 150,
    "spark": 150,
    "kafka-replay": 120,
    "kafka-three": 100,
    "kafka-pasts": 90,
    "kafka-secured": 90,
    "kafka-proxy": 90,
    "zookeeper-e2e": 80,
    "zookeeper-restored-ensemble": 60,
    "zookeeper-matrix": 60,
    "zookeeper-ensemble": 60,
    "kafka-older": 60,
    "zookeeper-restore": 60,
    "demo": 50,
    "hostile-values": 25,
}
_A_GROUP_S = 40
"""A group that the table does not have."""
_A_PAGE_S = 30
"""A page of the guides. Other single tests come last: they fill the time that is left."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Longest first, where several workers share the tests (`make test` passes --no-loadscope-reorder)."""
    if getattr(config.option, "loadgroup", False):
        items.sort(key=_place)


def _place(item: pytest.Item) -> tuple[int, str]:
    if groups := sorted(str(mark.args[0]) for mark in item.iter_markers("xdist_group")):
        name = "_".join(groups)
        return -_SECONDS.get(name, _A_GROUP_S), name
    return -_A_PAGE_S if item.name.startswith("test_commands_do_what_the_page_says") else 0, ""
