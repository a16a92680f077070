"""The `logkeep` command on a machine whose clock is off by the seconds that the file `$CLOCK_OFF` has at the moment."""

import os
import time
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from types import SimpleNamespace

import logkeep.kafka.admin.broker_clock as times_without_a_controller
import logkeep.model.time as times
from logkeep.cli.frame.main import main


def _off_s() -> int:
    return int(Path(os.environ["CLOCK_OFF"]).read_text())


def _now(zone: tzinfo) -> datetime:
    return datetime.now(zone) + timedelta(seconds=_off_s())


if __name__ == "__main__":
    # Every `utc_now` looks it up.
    vars(times)["datetime"] = SimpleNamespace(now=_now)
    vars(times_without_a_controller)["time"] = SimpleNamespace(time=lambda: time.time() + _off_s())
    main()
