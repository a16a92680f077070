"""How long does `logkeep init` on an S3 server take, and which checks of the store take how much of it?

    python -m benchmarks.s3_init [--rounds 5]

One real S3 server (SeaweedFS) on this host shares its cores with the client. The command is a process of its own: its
wall and CPU seconds, without those of the server. Then the probe runs once in this process. Checks run at the same
time, so each line has when the check began and ended.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from logkeep.model.time import random_token, utc_now
from logkeep.store.access import open_store
from logkeep.store.address import parse_address
from logkeep.store.conformance import checks, probe
from logkeep.store.conformance.trial import QUICK, Trial
from logkeep.store.retrying import RetryingStore
from tests.support.servers.s3 import S3Server, seaweed

BUCKET = "init"


@dataclass(frozen=True)
class Span:
    what: str
    began_s: float
    ended_s: float


class Spans:
    """When each part of a probe ran, since its beginning."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._lock = threading.Lock()
        self.found: list[Span] = []

    @contextmanager
    def noted(self, what: str) -> Iterator[None]:
        began_s = time.monotonic()
        yield
        with self._lock:
            self.found.append(Span(what, began_s - self._began_s, time.monotonic() - self._began_s))

    def around(self, what: str, run: Callable[[Trial], str | None]) -> Callable[[Trial], str | None]:
        def timed(trial: Trial) -> str | None:
            with self.noted(what):
                return run(trial)

        return timed


def command(server: S3Server) -> tuple[float, float]:
    """Wall and CPU seconds of one `logkeep init`."""
    url = server.url(BUCKET, random_token())
    before, began_s = _cpu_s(), time.monotonic()
    words = [sys.executable, "-m", "logkeep.cli", "init", "-r", url, "--quiet"]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return time.monotonic() - began_s, _cpu_s() - before


def probed(server: S3Server) -> list[Span]:
    """The parts of one probe, in order of their beginning."""
    spans = Spans()
    every = tuple(replace(check, run=spans.around(check.slug, check.run)) for check in checks.CHECKS)
    store, prefix = RetryingStore(open_store(server.url(BUCKET, random_token()))), f"probe-{random_token()}/"
    with spans.noted("= all checks, then the removal"):
        checks.run_checks(store, prefix, utc_now, QUICK, every, at_once=probe.AT_ONCE)
    with spans.noted("= questions about the bucket"):
        probe.about_bucket(parse_address(store.url))
    return sorted(spans.found, key=lambda span: span.began_s)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="s3-init-") as directory, seaweed(Path(directory)) as server:
        server.make_bucket(BUCKET)
        command(server)
        measured = [command(server) for _ in range(rounds)]
        for name, values in zip(("wall", "CPU"), zip(*measured, strict=True), strict=True):
            print(f"init, {name}: {statistics.median(values):5.2f} s ({min(values):.2f} to {max(values):.2f})")
        for span in probed(server):
            print(
                f"{span.what:32} {span.ended_s - span.began_s:5.2f} s  from {span.began_s:5.2f} to {span.ended_s:5.2f}"
            )


if __name__ == "__main__":
    main()
