"""A full disk or store: every verb that writes ends with a code that its help and the reference name."""

import errno
import os
from typing import NoReturn

import pytest

from logkeep.cli.frame.catalogue import VERBS
from logkeep.cli.frame.execute import classified
from logkeep.cli.frame.verb import Verb
from logkeep.config.options import YES
from logkeep.errors import StoreFull

WRITE_WITHOUT_A_QUESTION = {"verify", "drill", "demo", "zookeeper restore plan", "zookeeper restore survey"}


def _verbs() -> dict[str, Verb]:
    verbs = {entry.words: entry.load() for entry in VERBS}
    return {words: verb for words, verb in verbs.items() if YES in verb.options or words in WRITE_WITHOUT_A_QUESTION}


def _no_space(words: str) -> NoReturn:
    if words.startswith("kafka"):
        raise StoreFull("no space left on the device", subject="/srv/repo")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/srv/repo/object")


@pytest.mark.parametrize("words", [entry.words for entry in VERBS])
def test_the_code_is_declared_and_that_of_a_restore_where_it_restores(words: str) -> None:
    verb = _verbs().get(words)
    if verb is None:
        return
    with pytest.raises(StoreFull) as caught:
        classified(verb.job, lambda: _no_space(words))
    assert caught.value.exit_code in verb.exits
    assert caught.value.exit_code == (30 if 30 in verb.exits and 20 not in verb.exits else 20)
