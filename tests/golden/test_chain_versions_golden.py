"""Commits of version 2, as stored. Every later release reads them, and a release that does not know them ends there.

Those that bury, fold and trim are from repositories of the last release before burials, while it still ran. The one
about generations is made by hand. They are never written again.
"""

from pathlib import Path
from typing import Any

import pytest

from logkeep.errors import FormatTooNew
from logkeep.repository.chain.actions import Commit, version_for
from logkeep.repository.chain.documents import SourceDocument, seal, unseal
from logkeep.repository.chain.format import PACKED_RECORDS, ZSTD_FRAMES, FormatDocument, check_features

HERE = Path(__file__).parent / "chain"
BEFORE = frozenset({ZSTD_FRAMES, PACKED_RECORDS})
"""What the last release before burials knew."""
FEATURES = {"bury": "buried-offsets", "fold": "folded-logs", "trim": "trimmed-backups", "generations": "generations"}
every_kind = pytest.mark.parametrize("kind", FEATURES)


class EarlierCommit(SourceDocument, frozen=True, kw_only=True, tag="commit"):
    """As that release reads it: version 1, with actions of any kind."""

    generation: int
    previous: str
    run: str
    nonce: str
    time: str
    action: dict[str, Any]


def _stored(name: str) -> bytes:
    return (HERE / f"{name}.json").read_bytes()


@every_kind
def test_the_bytes_do_not_change(kind: str) -> None:
    commit = unseal(_stored(kind), Commit, kind)
    assert commit.version == version_for(commit.action) == 2
    assert seal(commit) == _stored(kind)
    document = unseal(_stored(f"{kind}-format"), FormatDocument, kind)
    assert seal(document) == _stored(f"{kind}-format")
    check_features(document)


@every_kind
def test_a_running_process_of_an_earlier_release_ends_at_the_commit(kind: str) -> None:
    with pytest.raises(FormatTooNew, match="version 2; this release reads 1"):
        unseal(_stored(kind), EarlierCommit, kind)


@every_kind
def test_a_new_process_of_an_earlier_release_ends_at_the_feature(kind: str) -> None:
    document = unseal(_stored(f"{kind}-format"), FormatDocument, kind)
    with pytest.raises(FormatTooNew, match=f"does not know: .*{FEATURES[kind]}"):
        check_features(document, BEFORE)


def test_every_file_is_read() -> None:
    assert {path.stem for path in HERE.iterdir()} == {f"{kind}{end}" for kind in FEATURES for end in ("", "-format")}
