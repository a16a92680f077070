"""What kinds of sources bring to shared verbs."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from logkeep.errors import UsageError
from logkeep.kinds import KAFKA, ZOOKEEPER, DeepRequest, SourceKind, kind_named, kind_of, require_kind
from logkeep.model.time import utc_now
from logkeep.repository.backups.source import ensure_source
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.verify.checks import hash_objects
from tests.support.zookeeper.repositories import new_place


def _source(kind: str) -> SourceRef:
    place = new_place()
    ensure_source(place, kind, {}, utc_now())
    return place


@pytest.mark.parametrize("kind", [KAFKA, ZOOKEEPER])
def test_a_source_has_the_kind_of_its_first_backup(kind: SourceKind) -> None:
    place = _source(kind.name)
    assert kind_of(place) is kind
    require_kind(place, kind)
    other = ZOOKEEPER if kind is KAFKA else KAFKA
    with pytest.raises(UsageError, match=f"of kind {kind.name}, not {other.name}"):
        require_kind(place, other)


def test_an_unknown_kind_can_be_verified_by_its_objects() -> None:
    for kind in (kind_of(new_place()), kind_named("etcd")):
        assert kind.verify_levels == ("files", "data")
        assert kind.read_task() is hash_objects
        assert kind.merge_way is None
    require_kind(new_place(), KAFKA)


@pytest.mark.parametrize("kind", [KAFKA, ZOOKEEPER, SourceKind()])
def test_the_level_files_needs_no_deeper_check(kind: SourceKind) -> None:
    def unused() -> None:
        raise AssertionError("not needed")

    with ExitStack() as resources:
        request = DeepRequest(new_place(), "files", True, unused, unused, Path(), resources)  # type: ignore[arg-type]
        assert kind.deeper(request) is None


def test_heavy_libraries_are_loaded_late() -> None:
    heavy = ("numpy", "numba", "pyarrow", "kafka", "kazoo", "pyspark")
    code = f"import sys, logkeep.kinds; sys.exit(any(name in sys.modules for name in {heavy!r}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
