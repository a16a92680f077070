"""The verdicts of many policies over one fixed history, kept as files that a reviewer can read.

`LOGKEEP_UPDATE_GOLDEN=1 pytest tests/golden` writes them anew; the difference in version control is the review.
"""

import json
import os
from pathlib import Path

import pytest

from logkeep.model.time import rfc3339
from logkeep.repository.upkeep.retention import Candidate, RetentionVerdict, decide
from tests.golden.retention_cases import NOW, POLICIES, history

FILES = Path(__file__).parent / "retention"


def _row(candidate: Candidate, verdict: RetentionVerdict) -> str:
    word = "keep" if verdict.keep else "remove"
    return f"{candidate.id:>2} {rfc3339(candidate.committed)} {word}: {', '.join(verdict.reasons)}"


def _rendered(name: str) -> str:
    candidates, policy = history(), POLICIES[name]
    verdicts = decide(candidates, policy, NOW)
    document = {
        "policy": repr(policy),
        "now": rfc3339(NOW),
        "removed": sum(not v.keep for v in verdicts),
        "verdicts": [_row(c, v) for c, v in zip(candidates, verdicts, strict=True)],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("name", POLICIES)
def test_policy_gives_its_golden_verdicts(name: str) -> None:
    path = FILES / f"{name}.json"
    if os.environ.get("LOGKEEP_UPDATE_GOLDEN") == "1":
        path.write_text(_rendered(name), encoding="utf-8")
    assert _rendered(name) == path.read_text(encoding="utf-8")


def test_no_golden_file_is_left_without_its_policy() -> None:
    assert {path.stem for path in FILES.iterdir()} == set(POLICIES)
