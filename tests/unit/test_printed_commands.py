"""Values in commands that are printed for a user to copy are quoted for the shell, wherever the source prints one."""

import ast
import re
from pathlib import Path

import logkeep

_PROGRAMS = r"sudo|chmod|chown|mv|rm|gcloud|aws|zkServer\.sh|zkCli\.sh|kafka-[a-z-]+\.sh|logkeep|zkbackup"
_COMMAND = re.compile(rf"(?:^|[`$:;\n] *|  )(?:{_PROGRAMS})(?: [^`;,\n]*)? $")
"""What stands before a value of a command."""
_QUOTING = re.compile(r"(?:shell_word|shell_line|shlex\.quote)\(")
_OF_OURS = {
    *(
        "backup_id",
        "chosen",
        "cut.id",
        "entry.id",
        "found.checkpoint_id",
        "manifest.id",
        "report.id",
        "report.restore",
        "restore",
    ),
    *("restore_id", "stored.id", "written.restore", "os.geteuid()", "directory.owner", "owner", "level"),
    *("held", "when", "where", "_SERVER", "_TOP", "file", "away", "places", "directory", "' '.join(parts)"),
    *("__version__", "report.version", "report.python", "entry.words", "words"),
}
"""Numbers, words of ours, and names of what is quoted already: a new one must be looked at."""


def _values_in_commands(source: str) -> list[str]:
    found = list[str]()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.JoinedStr):
            continue
        before = ""
        for part in node.values:
            if isinstance(part, ast.Constant):
                before += str(part.value)
            elif isinstance(part, ast.FormattedValue):
                if _COMMAND.search(before):
                    found.append(ast.unparse(part.value))
                before += "x"
    return found


def test_values_are_found() -> None:
    assert _values_in_commands("f'run `chmod 600 {path}`, {why}'") == ["path"]
    assert _values_in_commands("f'logkeep info {a} --source {b}, {c}'") == ["a", "b"]
    assert _values_in_commands("f'would export {a}'") == []


def test_every_value_in_a_printed_command_is_quoted() -> None:
    root = Path(logkeep.__file__).parent
    plain = {
        f"{path.relative_to(root)}: {value}"
        for path in root.rglob("*.py")
        for value in _values_in_commands(path.read_text())
        if value not in _OF_OURS and not _QUOTING.match(value)
    }
    assert plain == set()
