"""`--engine auto` as a command: small work stays here, and a Spark that cannot start is a finding."""

from pathlib import Path

import pytest

from logkeep.engine.auto import EngineChoice
from logkeep.repository.verify import checks
from tests.support.cli.filled_repository import fill
from tests.support.cli.in_process import Here


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """A repository whose objects are a unit each, and a machine without Java."""
    fill(tmp_path)
    monkeypatch.setattr(checks, "_UNIT_OBJECTS", 1)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    return Here(tmp_path, {"LOGKEEP_CACHE_DIR": str(tmp_path / "cache")})


def test_small_work_never_starts_spark(here: Here) -> None:
    found = here.run("verify", "--level", "data", "--json")
    assert (found.document["verdict"], found.document["findings"]) == ("good", [])
    assert "Spark" not in found.stderr


def test_a_spark_that_cannot_start_is_a_finding_and_the_work_is_done(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EngineChoice, "takes_spark", lambda _choice, _label, weights: len(weights) > 1)
    found = here.run("verify", "--level", "data", "--json")
    assert (found.document["verdict"], found.document["objects_read"]) == ("good", found.document["objects"])
    (finding,) = found.document["findings"]
    assert (finding["code"], finding["severity"]) == ("spark-unavailable", "warning")
    assert "JAVA_HOME does not contain a Java runtime" in finding["what"]
    assert found.stderr.count("Spark could not start") == 1
    assert here.run("verify", "--level", "data", "--engine", "inline", "--json").document["findings"] == []
    assert here.error("verify", "--level", "data", "--engine", "spark", code=40)["error"] == "engine-unavailable"
