"""What `zookeeper restore-subtree` says of ACLs that a server shows in part only."""

from types import SimpleNamespace
from typing import cast

from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.zookeeper.restore.subtree_report import SubtreeReport, planned_report, subtree_text
from logkeep.formats.zookeeper.transactions import OPEN_ACL, Acl, Acls
from logkeep.zookeeper.subtree.plan import plan
from logkeep.zookeeper.subtree.prepare import PreparedSubtree
from logkeep.zookeeper.subtree.source_nodes import WantedNode, WantedSubtree
from logkeep.zookeeper.timeline.plan import RestorePath
from tests.support.zookeeper.live_model import live

BACKED_UP: Acls = (Acl(31, b"digest", b"shop:hash"),)
SHOWN: Acls = (Acl(31, b"digest", b"shop:x"),)
NONE = "none: the live tree has all of it"


def _planned(acls: Acls, nodes: int = 1) -> SubtreeReport:
    paths = [b"/t", *(b"/t/%d" % number for number in range(1, nodes))]
    there = {b"": live(b"", b"", OPEN_ACL), **{path: live(path, b"", acls) for path in paths}}
    asked = WantedSubtree(b"/t", {path: WantedNode(b"", BACKED_UP) for path in paths}, {}, ())
    prepared = PreparedSubtree(plan(asked, there, delete_extra=False, proven=False), ())
    way = cast("RestorePath", SimpleNamespace(until=7, proof="proven", labels=()))
    return planned_report("zk", 1, "h:1", "/t", "/t", way, prepared)


def test_acls_that_cannot_be_compared_are_listed_and_asked_for() -> None:
    report = _planned(SHOWN)
    text = subtree_text(report, TerminalStyle())
    assert (report.acls_not_compared, report.exit_code) == (("/t",), 2)
    assert NONE not in text
    assert "ACLs that cannot be compared: 1 node\n  /t\n" in text
    assert "--auth-file" in text


def test_of_many_some_are_listed() -> None:
    assert "… and 5 more; --json has all" in subtree_text(_planned(SHOWN, nodes=25), TerminalStyle(unicode=True))


def test_with_admin_rights_nothing_is_left_open() -> None:
    report = _planned(BACKED_UP)
    assert (report.acls_not_compared, report.exit_code) == ((), 0)
    text = subtree_text(report, TerminalStyle())
    assert NONE in text
    assert "compared" not in text
