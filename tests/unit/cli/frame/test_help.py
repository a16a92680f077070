"""Help in two tiers, `help VERB`, the flags that people type, and ids that default to `latest`."""

from pathlib import Path
from typing import Any

import click
import pytest

from logkeep.cli.frame.catalogue import VERBS, VerbEntry
from logkeep.cli.frame.verb import COMMON
from logkeep.cli.zkbackup.main import COMMANDS
from logkeep.config.help_groups import HELP_GROUPS, by_group
from logkeep.config.options import ENGINE, REPO, RETRY_FOR, YES
from tests.support.cli.processes import logkeep

MOST_EVERYDAY = 18
HELP = ["-h", "--help"]
"""As the program has them: click keeps the help option of a command's first context."""


def parsed(words: str, *arguments: str) -> dict[str, Any]:
    entry = next(e for e in VERBS if e.words == words)
    return entry.parser().make_context(words, list(arguments), help_option_names=HELP).params


def section_titles(text: str) -> list[str]:
    return [line[:-1] for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]


def test_everyday_options_come_first_and_the_rest_by_group() -> None:
    assert list(by_group((ENGINE, REPO, RETRY_FOR)).items()) == [
        ("Options", [REPO]),
        ("Engine options", [ENGINE]),
        ("Transfer and storage options", [RETRY_FOR]),
    ]


def test_an_option_has_one_group() -> None:
    names = [option.name for group in HELP_GROUPS.values() for option in group]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("entry", VERBS, ids=lambda entry: entry.words)
def test_everyday_options_are_few(entry: VerbEntry) -> None:
    """One screen. A verb with more has options that belong into a group of `HELP_GROUPS`."""
    verb = entry.load()
    everyday = by_group(option for option in verb.options if option not in COMMON).get("Options", [])
    assert len(everyday) <= MOST_EVERYDAY or entry.words == "config show", [option.name for option in everyday]


def test_the_help_of_a_verb_has_its_groups_and_every_option(tmp_path: Path) -> None:
    text = logkeep("kafka", "restore", "--help", home=tmp_path).stdout
    assert section_titles(text) == [
        "Options",
        "Record options",
        "Cluster options",
        "Options for files of a stopped broker",
        "Options for datasets",
        "Engine options",
        "Transfer and storage options",
        "Common options",
        "Examples",
        "Exit codes",
    ]
    verb = next(e for e in VERBS if e.words == "kafka restore").load()
    flags = [spelling.flag for option in verb.options for spelling in option.spellings() if spelling.flag]
    assert [flag for flag in flags if flag not in text] == []


@pytest.mark.parametrize("words", ((), ("kafka",), ("kafka", "restore"), ("zookeeper", "restore", "plan")))
def test_help_and_a_verb_is_that_verbs_help(tmp_path: Path, words: tuple[str, ...]) -> None:
    asked = logkeep("help", *words, home=tmp_path)
    assert (asked.returncode, asked.stderr) == (0, "")
    assert asked.stdout == logkeep(*words, "--help", home=tmp_path).stdout


def test_help_of_an_unknown_verb_is_refused(tmp_path: Path) -> None:
    done = logkeep("help", "kafka", "restor", home=tmp_path)
    assert (done.returncode, done.stdout) == (40, "")
    assert "there is no command restor" in done.stderr
    assert "did you mean restore?" in done.stderr


def test_flags_that_people_type() -> None:
    given = parsed("kafka backup", "--bootstrap-server", "b:1", "--topic", "a", "--topics", "b")
    assert (given["bootstrap_servers"], given["topics"]) == ("b:1", ("a", "b"))
    assert parsed("info", "--topics", "a", "--topic", "b")["topic"] == ("a", "b")
    assert parsed("zookeeper backup", "--zk-data-dir", "/x", "--data-dir", "/y")["data_dir"] == ("/x", "/y")
    zkbackup = next(e for e in COMMANDS if e.words == "backup").parser()
    assert zkbackup.make_context("backup", ["--data-dir", "/x"], help_option_names=HELP).params["zk_data_dir"] == "/x"


NAMED = ("backup", "backups", "checkpoint", "restore", "restore_id")
"""Arguments that name a backup or a restore."""
FOLLOWED_BY_ANOTHER = {"kafka schemas show"}
"""The id of a schema comes behind the backup's."""
HARMLESS = {"kafka export", "zookeeper repair"}
"""An export changes nothing in the repository; a repair asks, and replaces only damaged objects, in all backups."""


def _named(entry: VerbEntry) -> click.Argument | None:
    arguments = [each for each in entry.parser().params if isinstance(each, click.Argument)]
    return next((each for each in arguments if each.name in NAMED), None)


@pytest.mark.parametrize("entry", [e for e in VERBS if _named(e)], ids=lambda entry: entry.words)
def test_an_id_defaults_to_the_latest_only_where_nothing_changes(entry: VerbEntry) -> None:
    argument = _named(entry)
    assert argument is not None
    reads = YES not in entry.load().options and not entry.words.endswith((" restore", " plan"))
    reads &= entry.words not in FOLLOWED_BY_ANOTHER
    assert (argument.default == "latest") == (reads or entry.words in HARMLESS)


def test_a_tree_is_compared_with_the_latest() -> None:
    assert parsed("zookeeper diff", "20261115")["after"] == "latest"


@pytest.mark.parametrize("words", ("app restore", "delete", "hold", "release", "kafka groups rollback"))
def test_verbs_that_change_need_an_id(words: str) -> None:
    with pytest.raises(click.MissingParameter):
        parsed(words)
