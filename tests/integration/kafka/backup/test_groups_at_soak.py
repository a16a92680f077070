"""Groups at a time where a real cleaner works on `__consumer_offsets`, judged by Apache's own commands."""

import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.group_history.answers import GroupQuestion
from logkeep.kafka.group_history.run import ArchivedGroups
from logkeep.model.cache import cache_dir
from tests.support.kafka.cleaned_topics import CONFIG
from tests.support.kafka.consumer_view import seen, watermarks
from tests.support.kafka.group_moments import Groups, archived_at, current_offsets, move
from tests.support.kafka.topic_matrix import BROKER, Matrix
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.processes import wait_for

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200), pytest.mark.xdist_group("kafka-groups-at")]
_TOPICS = ("__consumer_offsets", "__share_group_state", "soaked-.*")
_STEPS = 36
_COMPLETE = 20
"""Moments of which the archive shows everything, at least."""


@pytest.fixture
def cleaning(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    """A broker with one partition of the internal topic, which the cleaner works on all the time."""
    cache = cache_dir(os.environ, Path.home())
    properties = BROKER | {"offsets.topic.num.partitions": "1"}
    with EmbeddedKafka(tmp_path / "broker", cache, properties=properties) as running:
        yield running
    shutil.rmtree(tmp_path / "broker", ignore_errors=True)


def test_what_is_called_complete_is_what_apache_said(cleaning: EmbeddedKafka, tmp_path: Path) -> None:
    topics, chance = Matrix(cleaning), random.Random(11)
    archive = Archive(cleaning.bootstrap, new_place(tmp_path / "repository"))
    with Groups(cleaning, topics, "soaked") as groups:
        groups.create()
        _begin(groups)
        for config, value in (CONFIG | {"delete.retention.ms": "600000"}).items():
            topics.change("__consumer_offsets", config, value)
        for number in range(_STEPS):
            move(groups, chance, number, groups.by_apache)
            if number == _STEPS // 2:
                groups.recreate()
                _begin(groups)
            _back_up_and_note(groups, archive, chance)
        backup = int(archive.back_up(*_TOPICS, internal=True).entry.id)
        kinds = _compared(groups, archived_at(archive.place, backup))
        print(f"{kinds[True]} moments complete and equal, {kinds[False]} at least")
        assert kinds[True] >= _COMPLETE, "the cleaner may remove a commit before the backup after it"
        assert kinds[False] >= 1, "the cleaner removed commits that were never archived"


def _back_up_and_note(groups: Groups, archive: Archive, chance: random.Random) -> None:
    """A backup before the moment, after it, or none until the cleaner has removed a commit."""
    order = chance.choices(("before", "after", "cleaned"), (5, 3, 2))[0]
    if order == "before":
        archive.back_up(*_TOPICS, internal=True)
    groups.note(groups.by_apache)
    if order == "after":
        archive.back_up(*_TOPICS, internal=True)
    elif order == "cleaned":
        _clean(groups)


def _compared(groups: Groups, archived: ArchivedGroups) -> Counter[bool]:
    """How many moments are complete. Of the others, what is called sure is what was said."""
    kinds: Counter[bool] = Counter()
    for moment in groups.moments:
        found = archived.positions(GroupQuestion(("soaked-.*",), moment.at_ms))
        complete = found.complete.span is not None
        kinds[complete] += 1
        if complete:
            assert current_offsets(found) == moment.offsets, moment
        assert current_offsets(found, sure=True).items() <= moment.offsets.items(), moment
    return kinds


def _begin(groups: Groups) -> None:
    groups.commit("classic", 0, 1)
    groups.commit_as_member(0, 11)
    groups.begin(0, 1)
    groups.end(commit=True)
    groups.share(0, 1)


def _clean(groups: Groups) -> None:
    """Until the cleaner has removed a commit: fewer records than offsets are left."""

    def cleaned() -> bool:
        groups.commit("classic", 0, 3)
        start, end = watermarks(groups.kafka.bootstrap, "__consumer_offsets", 0)
        return len(seen(groups.kafka.bootstrap, "__consumer_offsets", 0)) < (end - start) // 2

    wait_for(cleaned, "the cleaner")
