"""Findings as lines: what to do is written once for several in a row."""

from logkeep.cli.terminal.finding_text import finding_texts
from logkeep.model.findings import Finding, Severity


def _finding(where: str, remedy: str = "", severity: Severity = Severity.WARNING, code: str = "c") -> Finding:
    return Finding(code=code, severity=severity, where=where, what="wrong", remedy=remedy)


def test_what_to_do_follows_once() -> None:
    found = [
        _finding("a/0", "look"),
        _finding("a/1", "look"),
        _finding("a/2", "listen"),
        _finding("a/3"),
        _finding("a/4", "nothing", Severity.NOTE),
        _finding("a/5", "look"),
    ]
    assert finding_texts(found) == [
        "WARNING a/0: wrong",
        "WARNING a/1: wrong",
        "        try: look",
        "WARNING a/2: wrong",
        "        try: listen",
        "WARNING a/3: wrong",
        "NOTE    a/4: wrong",
        "WARNING a/5: wrong",
        "        try: look",
    ]
    assert finding_texts([]) == []
