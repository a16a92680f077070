"""The texts that zkbackup prints for users, in their language: English in the code, Chinese in `chinese`.

The English text is the key: `say("Backups: {total}", total=15)`. Sentences of errors and findings are made elsewhere,
with their values: `say.sentence(text)` translates them by `sentences`. What the catalogue lacks is printed in English,
and tests find it. JSON, error ids, logs, metrics and the files of a backup are English in every language.
"""

from collections.abc import Callable, Mapping
from functools import cache

from logkeep.cli.terminal.text import TerminalStyle, cell_width, count, plural

_LOCALE_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
_LABEL_WIDTH = 12


def message(text: str) -> str:
    """Marks a text that is translated where it is printed."""
    return text


def language_of(environ: Mapping[str, str]) -> str:
    """`zh` or `en`, by the first of LC_ALL, LC_MESSAGES and LANG that is set."""
    locale = next((environ[name] for name in _LOCALE_VARIABLES if environ.get(name)), "")
    return "zh" if locale.partition(".")[0].partition("_")[0].lower() == "zh" else "en"


class Translation:
    """Texts in one language."""

    def __init__(self, catalogue: Mapping[str, str], sentences: Callable[[str], str] = str) -> None:
        """`sentences` translates a finished English sentence; without it they stay as they are."""
        self._catalogue, self._sentences = catalogue, sentences

    def __call__(self, text: str, /, **values: object) -> str:
        found = self._catalogue.get(text, text)
        return found.format(**values) if values else found

    def plural(self, number: int, noun: str) -> str:
        """`2 topics`; Chinese nouns have no plural, but a word between number and noun."""
        found = self._catalogue.get(noun)
        return plural(number, noun) if found is None else found.format(count=count(number))

    def sentence(self, text: str) -> str:
        """A sentence of an error or a finding, which has its values already."""
        return self._catalogue.get(text) or self._sentences(text)

    def labelled(self, label: str, value: str) -> str:
        """`Size:       1.2 GiB`, with values in one column whatever the labels' width."""
        name = f"{self(label)}:"
        return name + " " * max(_LABEL_WIDTH - cell_width(name), 1) + value


ENGLISH = Translation({})


def words(style: TerminalStyle) -> Translation:
    """For a stream of this style: English where it cannot show Chinese characters."""
    if style.language != "zh" or not style.unicode:
        return ENGLISH
    return chinese()


@cache
def chinese() -> Translation:
    from logkeep.cli.terminal.chinese import CHINESE, COUNTED, SENTENCES  # noqa: PLC0415 - only for those who read it
    from logkeep.cli.terminal.sentences import Sentences  # noqa: PLC0415 - as above

    return Translation(CHINESE, Sentences(SENTENCES, COUNTED))
