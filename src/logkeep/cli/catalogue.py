"""All verbs by name, and where each is written. A verb's module is loaded only when it is called.

To add a verb: write it (see the package's docstring), add its line here, run `make reference`.
The summary is the first line of the verb's docstring, repeated here so that `logkeep --help` loads nothing; a test
keeps the two equal.
"""

from dataclasses import dataclass
from importlib import import_module

from logkeep.cli.verb import Verb


@dataclass(frozen=True)
class Entry:
    """`words` is what a user types after `logkeep`: one, two or three words."""

    words: str
    where: str
    """`module:name`"""
    summary: str

    def load(self) -> Verb:
        module, _, name = self.where.partition(":")
        found = getattr(import_module(module), name)
        if not isinstance(found, Verb):
            raise TypeError(f"{self.where} is not a verb")
        return found


VERBS: tuple[Entry, ...] = (
    Entry("config show", "logkeep.cli.verbs.config:show", "Print every setting with the place it came from."),
    Entry("config validate", "logkeep.cli.verbs.config:validate", "Check all configuration and show every problem."),
    Entry("store probe", "logkeep.cli.verbs.store:probe", "Try out what a store can do and tell it in plain words."),
    Entry("completion", "logkeep.cli.verbs.completion:completion", "Print the completion script for a shell."),
    Entry("version", "logkeep.cli.verbs.version:version", "Print the version of Logkeep and what it runs on."),
)

GROUPS: dict[str, str] = {
    "config": "Look at the configuration.",
    "store": "Look at object stores.",
}
"""Summaries of the groups that the first words of two-word verbs make."""
