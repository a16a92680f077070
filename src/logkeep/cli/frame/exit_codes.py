"""The meaning of each exit code; `--help` and the reference page are made from this table.

An unknown non-zero code is a failure. Signals take precedence over errors, errors over warnings; the first error wins.
"""

EXITS: dict[int, str] = {
    0: "success",
    1: "a fault of this program",
    2: "finished, with warnings or repairs",
    3: "the user declined, or could not be asked",
    10: "verification failed: damage",
    11: "authenticity failed: bad or missing signature",
    12: "restore test failed",
    20: "backup failed, or a disk or store is full",
    21: "data gap: the source deleted data before it was backed up",
    30: "restore failed",
    31: "target unsafe: not empty, running, or of another source",
    40: "usage or configuration error, or this host cannot run it",
    41: "repository missing or not initialised",
    42: "wrong key or passphrase",
    43: "repository format newer than this tool",
    50: "locked by another run",
    51: "source or store unreachable after retries, or it refuses for no known reason",
    52: "permission denied, or an object lock forbids it",
    60: "policy breach: the newest good backup is older, or lags more, than the objective allows",
    130: "ended by SIGINT (Ctrl-C)",
    143: "ended by SIGTERM",
}

ALWAYS = (0, 1, 40, 130, 143)
"""Codes of every verb."""

STORE_EXITS = (41, 43, 51, 52)
"""Codes of any verb that opens a repository."""


def when_full(declared: tuple[int, ...]) -> int:
    """The code of a verb that finds a disk or store full: that of a failed restore, if it can end with this one."""
    return 30 if 30 in declared and 20 not in declared else 20


def possible(declared: tuple[int, ...], *, changes: bool) -> tuple[int, ...]:
    """The codes that a verb can return, in order. Raises KeyError for an unknown one."""
    codes = sorted({*ALWAYS, *declared, *((3, when_full(declared)) if changes else ())})
    return tuple(code for code in codes if EXITS[code])
