"""What `kafka groups restore` prints."""

import msgspec

from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.kafka.groups_restore import GroupsMoved, _text


def test_positions_in_chosen_topics_are_a_note() -> None:
    report = GroupsMoved(
        source="prod", id=None, backup=1, restore=None, cluster_id="c", groups=2, overwritten=0, reread=0,
        positions=(), untouched=(), rollback=False, dry_run=True, all=False, chosen_topics=("orders", "payments"),
    )  # fmt: skip
    assert "NOTE  only positions in 2 chosen topics: orders, payments" in _text(report, TerminalStyle())
    assert "NOTE" not in _text(msgspec.structs.replace(report, chosen_topics=None), TerminalStyle())


def test_untouched_groups_are_one_note() -> None:
    names = tuple(f"group-{i}" for i in range(20))
    report = GroupsMoved(
        source="prod", id=None, backup=1, restore=None, cluster_id="c", groups=0, overwritten=0, reread=0,
        positions=(), untouched=names, rollback=False, dry_run=True, all=False,
    )  # fmt: skip
    shown = _text(report, TerminalStyle())
    assert shown.count("NOTE") == 1
    assert "20 groups without an offset in what was restored, not changed: group-0, group-1" in " ".join(shown.split())
    assert "group-19" not in shown
