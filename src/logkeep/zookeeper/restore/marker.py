"""The file that keeps every version of the server from starting while its directory is between two states.

It has the name of the last log that there can be, and is no log: a server reads the newest log before anything else,
and exits. It lies where the logs are, from before the first file is moved until after the last.
"""

from typing import Final

MARKER: Final = "log.7fffffffffffffff"


def marker_text(restore: str, data_dir: str) -> bytes:
    """Not empty: an empty last log is deleted by some versions."""
    return (
        f"A restore ({restore}) of this server's data was interrupted. This file keeps the server from starting.\n"
        f"Do not delete it: end the restore of {data_dir} by continuing it or by rolling it back.\n"
    ).encode()
