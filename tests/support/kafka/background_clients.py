"""Clients that go on working while a test does something else."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def running(*works: Callable[[threading.Event], None]) -> Iterator[None]:
    """Threads that work until the block ends; what they raise is raised here."""
    stop, wrong = threading.Event(), list[BaseException]()

    def guarded(work: Callable[[threading.Event], None]) -> None:
        try:
            work(stop)
        except BaseException as error:  # noqa: BLE001 - it is raised again in the test's own thread
            wrong.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if wrong:
        raise wrong[0]
