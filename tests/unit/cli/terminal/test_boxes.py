"""What zkbackup prints on a narrow terminal: sentences are broken between words, commands and paths are not."""

from hypothesis import given
from hypothesis import strategies as st

from logkeep.cli.terminal.boxes import BAD, fit_terminal
from logkeep.cli.terminal.text import TerminalStyle, cell_width

_WORDS = st.lists(st.text("abcdefghij", min_size=1, max_size=12), min_size=1, max_size=40)


@given(_WORDS, st.integers(40, 120), st.booleans())
def test_sentences_fit_and_say_the_same(words: list[str], width: int, unicode: bool) -> None:
    shown = fit_terminal([f"{BAD} in the way: {' '.join(words)}"], TerminalStyle(unicode=unicode, width=width))
    assert all(cell_width(line) <= width for line in shown.split("\n"))
    assert shown.split()[4:] == words


def test_commands_and_lines_without_a_terminal_stay_whole() -> None:
    command = f"   zkbackup restore --rollback --zk-data-dir /{'d' * 60} --zk-log-dir /{'l' * 60}"
    assert fit_terminal([command], TerminalStyle(unicode=True, width=80)) == command
    sentence = f"{BAD} in the way: {'word ' * 40}end"
    assert fit_terminal([sentence], TerminalStyle(unicode=True)) == sentence
