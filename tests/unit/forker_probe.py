"""`python -m tests.unit.forker_probe WORDS`: print what a process finds at its start, and end as the words say."""

import locale
import os
import signal
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    passing = {"PWD", "SHLVL", "_", "LC_CTYPE"}
    print(sys.argv[1:], sys.path[:3], Path.cwd(), __name__)
    print({name: value for name, value in os.environ.items() if name not in passing})
    print(time.tzname, locale.setlocale(locale.LC_CTYPE), os.umask(0))
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        print(stream.name, stream.mode, stream.encoding, stream.errors, stream.line_buffering, stream.isatty())
    print([signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD)])
    print(list(sys.stdin), sorted(int(each.name) for each in Path("/proc/self/fd").iterdir())[:3])
    match sys.argv[1:]:
        case ["exit", "text"]:
            sys.exit("a last word")
        case ["exit", code]:
            sys.exit(int(code))
        case ["raise"]:
            raise ValueError("unexpected")
        case ["interrupt"]:
            raise KeyboardInterrupt
