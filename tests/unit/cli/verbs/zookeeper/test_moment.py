"""A leader's clock may have said anything: the past is told all the same, in every zone."""

from datetime import timedelta, timezone

import pytest

from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.zookeeper import diff
from logkeep.cli.verbs.zookeeper import history as zookeeper_history
from logkeep.engine.inline import InlineEngine
from logkeep.formats.zookeeper.transactions import OPEN_ACL, Create, Transaction
from logkeep.zookeeper.history.compare import TreeSide, compare
from logkeep.zookeeper.history.log_task import Depth, WantedEvents
from logkeep.zookeeper.history.run import history
from logkeep.zookeeper.model.archived import Member
from logkeep.zookeeper.timeline.plan import ToZxid
from tests.support.zookeeper.encoding import body, record
from tests.support.zookeeper.handmade_history import MemoryView

TIMES = [-(1 << 62), 253_402_300_799_999, 1 << 62]


def _view(time_ms: int) -> MemoryView:
    view = MemoryView(members=[Member(name="a", role="standalone")])
    made = [Transaction(1, 0, z, time_ms, 1, Create(b"/n%d" % z, b"", OPEN_ACL, False, z), None) for z in (1, 2)]
    view.add_log([record(body(each)) for each in made])
    return view


@pytest.mark.parametrize("time_ms", TIMES)
@pytest.mark.parametrize("hours", [-12, 14])
def test_history_shows_a_time_whatever_it_is(time_ms: int, hours: int) -> None:
    found = history(_view(time_ms), WantedEvents(b"/n1", Depth.ITSELF, 10), lambda _: InlineEngine())
    text = zookeeper_history._text(
        zookeeper_history._report("x", "/n1", found),
        TerminalStyle(zone=timezone(timedelta(hours=hours))),
    )
    assert "1 change in 2 transactions" in text


@pytest.mark.parametrize("time_ms", TIMES)
def test_diff_names_its_moments_whatever_they_are(time_ms: int) -> None:
    one, other = (TreeSide(_view(time_ms), ToZxid(zxid)) for zxid in (1, 2))
    told = diff._report("/", one, other, compare(one, other, b"", 10))
    assert told.before.time is not None
    assert told.counts["created"] == 1
