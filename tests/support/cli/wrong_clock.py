"""The `logkeep` command on a machine whose clock is off by the seconds that the file `$CLOCK_OFF` has at the moment."""

import datetime as real
import os
import time
from pathlib import Path
from types import SimpleNamespace

import logkeep.kafka.admin.broker_clock as times_without_a_controller
import logkeep.model.time as times
from logkeep.cli.frame.main import main


def _off_s() -> int:
    return int(Path(os.environ["CLOCK_OFF"]).read_text())


class _WrongDatetime(real.datetime):
    """`now` is an ordinary time, which is wrong."""

    @classmethod
    def now(cls, tz: real.tzinfo | None = None) -> real.datetime:  # type: ignore[override]  # see above
        return real.datetime.now(tz) + real.timedelta(seconds=_off_s())


if __name__ == "__main__":
    times.datetime = _WrongDatetime  # type: ignore[misc]  # every `utc_now` looks it up
    wrong = SimpleNamespace(time=lambda: time.time() + _off_s())
    times_without_a_controller.time = wrong  # type: ignore[assignment]  # the only function that it uses
    main()
