"""Decides whether a server that exited while starting refused its files, or the host is the cause. Pure."""

import re
from collections.abc import Sequence

_ASKED_TO_END = (129, 130, 143)
"""Exit codes of Java after a signal that it can catch."""
_NO_MEMORY = "free memory; _JAVA_OPTIONS=-Xmx4g in the environment lets the server use more"
_TORN_JARS = "its jars are incomplete: remove `jars` in the cache directory and run again"
_BAD_JAVA = "check that the Java runtime works: `java -version`; check _JAVA_OPTIONS and JAVA_HOME"
_BAD_DISK = "check that the directory for temporary files can be written, or set TMPDIR to another one"
_NO_SPACE = "free space, or set TMPDIR to a larger directory"
_OF_THE_MACHINE = {
    "java.lang.OutOfMemoryError": _NO_MEMORY,
    "Could not reserve enough space": _NO_MEMORY,
    "insufficient memory for the Java Runtime": _NO_MEMORY,
    "Cannot allocate memory": _NO_MEMORY,
    "java.net.BindException": "another program uses its port: run again",
    "No space left on device": _NO_SPACE,
    "Disk quota exceeded": _NO_SPACE,
    "Too many open files": "raise the limit of open files (ulimit -n)",
    "Could not find or load main class": _TORN_JARS,
    'in thread "main" java.lang.NoClassDefFoundError': _TORN_JARS,
    "java.lang.UnsupportedClassVersionError": "install a newer Java runtime and set JAVA_HOME",
    "Error occurred during initialization of VM": _BAD_JAVA,
    "Could not create the Java Virtual Machine": _BAD_JAVA,
    "Unrecognized VM option": _BAD_JAVA,
    "error while loading shared libraries": _BAD_JAVA,
    "Input/output error": _BAD_DISK,
    "Read-only file system": _BAD_DISK,
    "Permission denied": _BAD_DISK,
}
"""Messages of servers and Java that are not about the files, and what to do. The first match is used."""
_OWN_WORDS = "exiting abnormally"
"""What every release of ZooKeeper logs when it refuses its files."""
_VM_WARNING = re.compile(r"\[[0-9.]+s\]\[warning\]|.*64-Bit Server VM warning:")
"""Harmless warnings of Java before the server logs anything."""


def machine_trouble(exit_code: int, log: Sequence[str]) -> tuple[str, str] | None:
    """What is wrong with the host, and the remedy; None if the server refused its files.

    A server that did not log that it exits abnormally did not refuse its files."""
    if exit_code < 0 or exit_code in _ASKED_TO_END:
        return (
            "another process ended the server while it started",
            "check whether the kernel ran out of memory, then run again",
        )
    lines = [line.strip() for line in log if not _VM_WARNING.match(line)]
    for words, remedy in _OF_THE_MACHINE.items():
        if line_found := next((line for line in lines if words in line), None):
            return f"the server exited while starting, not because of its files: {line_found}", remedy
    if not any(_OWN_WORDS in line for line in lines):
        return f"the server exited with {exit_code} while starting and did not report its files as the cause", _BAD_JAVA
    return None


def without_frames(log: Sequence[str]) -> list[str]:
    """The lines of a server's log without Java stack frames."""
    return [line for line in log if line.strip() and not line.startswith(("\tat ", "\t... "))]
