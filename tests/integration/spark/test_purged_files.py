"""Hidden memory and purged files: a process with a secret still lets its workers read what it keeps open."""

import json
import sys

import pytest

from tests.support.plain_user import UID, home_of_plain_user, share_compiled, started
from tests.support.processes import PATIENCE_S

pytestmark = pytest.mark.xdist_group("spark")


def test_workers_read_files_that_were_purged_during_the_copy() -> None:
    """Not as root, who may read everything: the kernel closes /proc/PID/fd of a process with hidden memory."""
    with home_of_plain_user() as home:
        cache = share_compiled(home)
        command = [sys.executable, "-m", "tests.integration.spark.purge_program", str(home), str(cache)]
        with started(command, home) as run:
            output, errors = run.communicate(timeout=2 * PATIENCE_S)
        assert run.returncode == 0, errors
    found = json.loads(output)
    assert (found["uid"], found["code"], found["records"]) == (UID, 0, 6), found
    assert found["dumpable"] == [0, 1, 0], "hidden after the secret, open while files are kept, hidden again"
