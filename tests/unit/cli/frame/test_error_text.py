"""Errors on a terminal: wrapped between words beside their labels, commands in one piece."""

from logkeep.cli.frame.error_text import as_text
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.errors import UsageError

REFUSED = UsageError(
    "no broker answers Metadata; the last one: connection refused",
    subject="file:///a/very/long/path/without/blanks/that/does/not/fit",
    remedy="check the network, then run `logkeep check --source shop` again",
)


def test_three_lines_where_there_is_room() -> None:
    lines = as_text(REFUSED, TerminalStyle()).splitlines()
    assert [line[:7] for line in lines] == ["error: ", "   at: ", "  try: "]


def test_wrapped_between_words_on_a_narrow_terminal() -> None:
    assert as_text(REFUSED, TerminalStyle(width=40)).splitlines() == [
        "error: no broker answers Metadata; the",
        "       last one: connection refused",
        "   at: file:///a/very/long/path/without/blanks/that/does/not/fit",
        "  try: check the network, then run",
        "       `logkeep check --source shop`",
        "       again",
    ]


def test_colours_do_not_count_as_width() -> None:
    plain = as_text(REFUSED, TerminalStyle(width=40))
    coloured = as_text(REFUSED, TerminalStyle(width=40, colour=True))
    assert coloured.replace("\x1b[31m", "").replace("\x1b[1m", "").replace("\x1b[0m", "") == plain
    assert coloured.startswith("\x1b[31merror:\x1b[0m no")
