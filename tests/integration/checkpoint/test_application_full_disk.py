"""A disk that is full or fails: commands wait, and each gets its reply; no snapshot is no reason to end."""

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from logkeep.application import Application, Command, Context
from logkeep.application.data_directory import open_directory
from logkeep.application.partition_worker import KeepingLimits
from logkeep.application.runtime import Runtime
from logkeep.application.worker_factory import RuntimeOptions
from logkeep.errors import StoreError
from logkeep.model.time import utc_now
from tests.support.processes import wait_for


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    shop = Application("shop", partitions=1)

    @shop.on("put")
    def put(command: Command, state: Any, context: Context) -> None:
        state[command.key] = command.value
        context.reply("done")

    made = Runtime(
        shop, open_directory(tmp_path, "shop", 1, utc_now()), RuntimeOptions(KeepingLimits(snapshot_every_bytes=1))
    )
    made.start()
    yield made
    made.stop()


def test_commands_that_wait_for_space_in_the_log_get_their_replies(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, refused = os.pwrite, threading.Event()

    def once(descriptor: int, data: memoryview, at: int) -> int:
        if not refused.is_set():
            refused.set()
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data, at)

    monkeypatch.setattr(os, "pwrite", once)
    assert runtime.submit("put", "a", 1, timeout_s=120) == "done"
    assert refused.is_set()


def test_a_command_whose_result_is_in_the_log_is_answered_though_the_state_is_full(
    runtime: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    database = runtime.workers[0].backend._database
    (pages,) = database.execute("pragma page_count").fetchone()
    database.execute(f"pragma max_page_count = {pages}")
    assert runtime.submit("put", "a", "x" * 100_000, timeout_s=120) == "done"
    wait_for(lambda: "no space is left for the state" in caplog.text, "the full disk")
    database.execute("pragma max_page_count = 1000000")
    assert runtime.submit("put", "b", 1, timeout_s=120) == "done"


def test_a_snapshot_that_sqlite_cannot_make_does_not_end_the_application(
    runtime: Runtime, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(StoreError, match="unable to open database file"):
        runtime.workers[0].backend.snapshot(tmp_path / "missing/snapshot")
    runtime.workers[0].backend._path = tmp_path / "missing/state.sqlite"
    assert runtime.submit("put", "a", 1, timeout_s=120) == "done"
    wait_for(lambda: "no snapshot: " in caplog.text, "the snapshot that fails")
    assert runtime.submit("put", "b", 2, timeout_s=120) == "done"
    assert runtime.failure() is None
