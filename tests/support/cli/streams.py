"""What calls of a program within this process share: the text of a redirected stream, and logging as it was before."""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager


def text_of(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


@contextmanager
def logs_as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("logkeep")
    handlers, levels = list(root.handlers), (root.level, ours.level)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.handlers[:] = handlers
        root.setLevel(levels[0])
        ours.setLevel(levels[1])
