"""Collects the sentences that code makes for users: texts with words and spaces, values as `{}`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

_WORDS = re.compile(r"[a-z]{2,}'?s? [a-z({]|[a-z)}] [a-z]{2,}")
_OF_OTHERS = {
    "say", "message", "labelled", "plural", "ZkOption", "compile", "getLogger", "info", "debug", "warning", "error",
    "AssertionError", "TypeError", "ValueError", "cast",
}  # fmt: skip
"""Calls whose texts are translated in another way, logged, or for programmers."""


def sentences_of(source: Path) -> Iterator[str]:
    """Of one module, without docstrings."""
    tree = ast.parse(source.read_text())
    skipped = {id(node) for node in _skipped(tree)}
    for node in ast.walk(tree):
        text = _template(node) if id(node) not in skipped else None
        if text and _WORDS.search(text):
            yield text


def labels_of(source: Path) -> Iterator[str]:
    """The labels of work, which progress shows."""
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.keyword) and node.arg == "label" and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


def _skipped(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield from (part for part in node.values if isinstance(part, ast.Constant))
            forms = [part.format_spec for part in node.values if isinstance(part, ast.FormattedValue)]
            yield from (below for form in forms if form is not None for below in ast.walk(form))
        elif isinstance(node, ast.Call) and _name(node.func) in _OF_OTHERS:
            yield from (below for given in (*node.args, *node.keywords) for below in ast.walk(given))


def _name(called: ast.expr) -> str:
    if isinstance(called, ast.Call):  # `words(look)("text")`
        return "say"
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def _template(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if not isinstance(node, ast.JoinedStr):
        return None
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
