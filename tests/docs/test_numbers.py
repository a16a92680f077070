"""Numbers on the pages about applications are those of the code."""

from pathlib import Path

import pytest

from logkeep.application.context import MOST_EVENT_BYTES
from logkeep.checkpoint.machine_state import GENERATIONS_KEPT, REQUESTS_PER_GENERATION

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["guides/applications.md", "formats/checkpoints.md"])
def test_the_limits_of_applications(page: str) -> None:
    text = (DOCS / page).read_text()
    assert f"{(GENERATIONS_KEPT - 1) * REQUESTS_PER_GENERATION:,} " in text
    assert f"{MOST_EVENT_BYTES >> 20} MiB at most" in text
