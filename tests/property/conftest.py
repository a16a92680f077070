"""What the random walks share."""

from collections.abc import Iterator

import pytest

from tests.support.decoded_parts import decoded_once


@pytest.fixture(scope="module", autouse=True)
def parts_decoded_once() -> Iterator[None]:
    with decoded_once():
        yield
