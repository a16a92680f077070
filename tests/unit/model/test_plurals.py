"""No text says "1 backups": a number that may be one takes its noun from `plural`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from logkeep.model.plurals import plural

SOURCE = Path(__file__).parents[3] / "src" / "logkeep"
NOUN = re.compile(r" (?:[a-z]+ )?([a-z]+s)\b")
NO_NOUNS = {"is", "has", "was", "bytes", "always"}
ABOVE_ONE = {
    "cli/demo/story.py",
    "cli/demo/zookeeper_story.py",
    "cli/verbs/demo.py",
    "cli/verbs/repository/store.py",
    "cli/verbs/zookeeper/admin_backup.py",
    "formats/run_map/file_format.py",
    "kafka/restore/plan/repartition.py",
    "kafka/restore/plan/torn_transactions.py",
    "model/ids.py",
    "repository/access.py",
    "repository/backups/content.py",
    "store/conformance/reads.py",
    "store/conformance/writes.py",
}
"""Here the number is a constant or known to be above one, or the text is about a malformed document."""


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 topics were"), (1, "1 topic was"), (2, "2 topics were"), (1234, "1,234 topics were")],
)
def test_a_noun_or_a_phrase_agrees_with_its_number(number: int, text: str) -> None:
    assert plural(number, "topic was", "topics were") == text
    assert plural(number, "topic") == text.rpartition(" ")[0]


def counted(tree: ast.AST) -> Iterator[str]:
    """Texts in which a noun in the plural follows a number: `{len(found)} backups`."""
    for text in (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)):
        for value, after in zip(text.values, text.values[1:], strict=False):
            if isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant) and is_number(value):
                noun = NOUN.match(str(after.value))
                if noun and noun[1] not in NO_NOUNS:
                    yield f"{value.lineno}: {ast.unparse(value.value)}{noun[0]}"


def is_number(value: ast.FormattedValue) -> bool:
    called = value.value.func if isinstance(value.value, ast.Call) else None
    form = ast.unparse(value.format_spec) if value.format_spec else ""
    return (isinstance(called, ast.Name) and called.id in {"len", "count", "sum"}) or "," in form


def test_no_number_is_followed_by_a_noun_in_the_plural() -> None:
    found = {
        f"{path.relative_to(SOURCE)}:{text}"
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).as_posix() not in ABOVE_ONE
        for text in counted(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert not found, "use logkeep.model.plurals"


def test_such_a_text_is_found() -> None:
    assert list(counted(ast.parse('f"{len(found)} more backups of {name} has {n} topics, {n:,} logs"'))) == [
        "1: len(found) more backups",
        "1: n logs",
    ]
