"""Whether a server that exited while it started refuses what it found, or this machine failed it. Pure."""

import re
from collections.abc import Sequence

_ASKED_TO_END = (129, 130, 143)
"""What a Java machine exits with when somebody sent it a signal that it can catch."""
_NO_MEMORY = "see that memory is free; _JAVA_OPTIONS=-Xmx4g in the environment lets the server take more"
_TORN_JARS = "its jars are not whole: remove `jars` in the cache directory and run again"
_BAD_JAVA = "see that this Java runtime works: `java -version`; look at _JAVA_OPTIONS and JAVA_HOME"
_BAD_DISK = "see that the directory for scratch files can be written, or name another one with TMPDIR"
_NO_SPACE = "free space, or name a larger directory with TMPDIR"
_OF_THE_MACHINE = {
    "java.lang.OutOfMemoryError": _NO_MEMORY,
    "Could not reserve enough space": _NO_MEMORY,
    "insufficient memory for the Java Runtime": _NO_MEMORY,
    "Cannot allocate memory": _NO_MEMORY,
    "java.net.BindException": "another program took its port meanwhile: run again",
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
"""What servers and Java say when it is not for the files, and what to do about it. The first that is found counts."""
_OWN_WORDS = "exiting abnormally"
"""What every release of ZooKeeper logs when it gives up on what it found."""
_VM_WARNING = re.compile(r"\[[0-9.]+s\]\[warning\]|.*64-Bit Server VM warning:")
"""Java complains of many things that it then does without, before a server says its first word."""


def machine_trouble(exit_code: int, log: Sequence[str]) -> tuple[str, str] | None:
    """What was wrong with this machine, and the remedy; None for a server that ended by itself for what it found.

    One that did not say that it gave up says nothing of its files, whatever it ended for."""
    if exit_code < 0 or exit_code in _ASKED_TO_END:
        return "somebody ended it while it started", "see whether the kernel was short of memory, and run again"
    said = [line.strip() for line in log if not _VM_WARNING.match(line)]
    for words, remedy in _OF_THE_MACHINE.items():
        if told := next((line for line in said if words in line), None):
            return f"it exited while starting, and not for its files: {told}", remedy
    if not any(_OWN_WORDS in line for line in said):
        return f"it exited with {exit_code} while starting, and did not say that it was for its files", _BAD_JAVA
    return None


def without_frames(log: Sequence[str]) -> list[str]:
    """The lines of a server's log that say something: calls of Java methods push the reason out of sight."""
    return [line for line in log if line.strip() and not line.startswith(("\tat ", "\t... "))]
