"""Files and processes of another user of the same host.

Tests that run as root give files to the user 65534. Without root no second user is at hand: then every user gets the
right to write to the file, which is the other way in which it can be another user's work.
"""

import os
from pathlib import Path

OTHER = 65534


def give_to_other(*paths: Path) -> None:
    """Let another user own these files and directories, or write to them."""
    for path in paths:
        if os.geteuid() == 0:
            os.chown(path, OTHER, OTHER)
        else:
            path.chmod(path.stat().st_mode | 0o022)
