"""Every offset kept where records are few: thousands of holes that compaction left, and a first offset far behind 0.

Exact, with how long it took; or, where it would take too long, `auto` says so beforehand and gives new offsets.
"""

import pytest

from logkeep.kafka.restore.plan import duration
from tests.crash.seeds import seeded
from tests.integration.kafka.restore.scene import Scene, set_config, troubles
from tests.support.kafka.consumer_view import seen, watermarks
from tests.support.kafka.sparse_logs import holes_of, write_compacted, write_late

pytestmark = pytest.mark.xdist_group("kafka-restore")
LATE_RECORDS = 300


def _write_compacted(scene: Scene, topic: str, holes: int, widest: int = 4) -> int:
    """How many holes there are, as a consumer sees them; nothing changes them any more."""
    write_compacted(scene.kafka, scene.topics, topic, holes, seeded(topic), widest)
    set_config(scene.kafka, topic, "retention.ms", "-1")
    set_config(scene.kafka, topic, "cleanup.policy", "delete")
    offsets = seen(scene.kafka.bootstrap, topic, 0)
    return holes_of(offsets, *watermarks(scene.kafka.bootstrap, topic, 0))


def _assert_same(scene: Scene, topic: str) -> None:
    """Every record at its own offset; where the log begins and ends; no offset has anything else for a consumer."""
    assert seen(scene.target.bootstrap, topic, 0) == seen(scene.kafka.bootstrap, topic, 0)
    assert watermarks(scene.target.bootstrap, topic, 0) == watermarks(scene.kafka.bootstrap, topic, 0)


def _restored(scene: Scene, name: str, holes: int, millions: int) -> None:
    """Both kinds of log, each by itself, so that each has its own time."""
    compacted, late = f"{name}-compacted", f"{name}-late"
    there = _write_compacted(scene, compacted, holes)
    assert there >= holes
    start = write_late(scene.kafka, scene.topics, late, millions, LATE_RECORDS)
    scene.back_up(f"{name}-.*")
    auto = scene.restore("--dry-run")
    assert auto["offsets"] == "preserve"
    assert f"{start:,} offsets before the first ones" in auto["why"]
    for topic, what in ((compacted, f"{there:,} holes"), (late, f"a first offset of {start:,}")):
        done = scene.restore("--topics", topic, "--offsets", "preserve")
        assert (done["verdict"], troubles(done)) == ("proven", [])
        _assert_same(scene, topic)
        print(f"{topic}: {what}, all offsets kept, restored and compared in {done['seconds']:.1f} s")


def test_hundreds_of_holes_and_a_first_offset_of_millions(scene: Scene) -> None:
    _restored(scene, "few", holes=200, millions=2)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_thousands_of_holes_and_a_first_offset_of_a_hundred_millions(scene: Scene) -> None:
    _restored(scene, "many", holes=5000, millions=100)


@pytest.mark.parametrize("holes", [600, pytest.param(36_000, marks=pytest.mark.soak)])
def test_more_holes_than_are_worth_it(scene: Scene, monkeypatch: pytest.MonkeyPatch, holes: int) -> None:
    """Some ten minutes of filling: `auto` says why it does not, and what was forced is told its price.

    Where there are fewer holes, each is expected to take longer.
    """
    monkeypatch.setattr(duration, "MARKERS_PER_S", duration.MARKERS_PER_S * holes / 36_000)
    riddled = f"riddled-{holes}"
    there = _write_compacted(scene, riddled, holes, widest=1)
    assert there >= holes
    scene.back_up(riddled)
    forced = scene.restore("--offsets", "preserve", "--dry-run")
    (cost,) = [each for each in forced["findings"] if each["code"] == "offsets-cost"]
    assert "takes about 1" in cost["what"]
    assert "--offsets translate" in cost["remedy"]
    done = scene.restore()
    assert (done["verdict"], done["offsets"]) == ("proven", "translate")
    assert "records get new offsets: filling up to " in done["why"]
    assert "more than 10 min" in done["why"]
    found, expected = (seen(each.bootstrap, riddled, 0) for each in (scene.target, scene.kafka))
    assert list(found.values()) == list(expected.values())
    assert list(found) == list(range(len(expected)))
