"""What `kafka groups restore` prints."""

from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.kafka.groups_restore import GroupsMoved, _text


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
