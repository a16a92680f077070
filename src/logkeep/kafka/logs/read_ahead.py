"""Reading ahead by one: while an item is worked on, another thread makes the next one ready."""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def ahead(items: Iterator[T], name: str) -> Generator[T, None, None]:
    """The same items. An item must stay valid until the one after the next is asked for.

    What goes wrong in the other thread is raised here, in its turn. Close the iterator, or use it up.
    """
    with ThreadPoolExecutor(1, name) as reader:
        coming = reader.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = reader.submit(next, items, None)
            yield item
