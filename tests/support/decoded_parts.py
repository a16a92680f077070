"""Parts decoded once: suites of random walks and crash points read the same bytes thousands of times.

To decode a part is a pure function of its bytes, which are still read from the store and compared with their hash each
time. `tests/corruption` and the tests of parts decode every time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import pytest

from logkeep.repository.backups import content
from logkeep.repository.parts import decode

_MOST_PARTS = 1000


@contextmanager
def decoded_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(content, "decode", lru_cache(_MOST_PARTS)(decode))
        yield
