"""Every requirement, failure scenario and verification rule has a test of its number.

A test named `test_r21_...` shows R21; `test_r33_r34_...` shows both. Numbers without a test are in MISSING, with the
reason; the list only shrinks.
"""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[2]
NUMBERS = [*(f"r{n}" for n in range(1, 63)), *(f"s{n}" for n in range(1, 9)), *(f"v{n}" for n in range(1, 14))]
NUMBER = re.compile(r"_([rsv]\d{1,2})(?=_)")
MISSING: dict[str, str] = {}
MOST_MISSING = 0


def _shown() -> set[str]:
    found: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        if "checkpoint" in path.as_posix() or "application" in path.as_posix():
            names = [node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
            found.update(number for name in names if name.startswith("test_") for number in NUMBER.findall(name))
    return found


def test_every_number_has_a_test_of_its_name() -> None:
    shown = _shown()
    assert [number for number in NUMBERS if number not in shown and number not in MISSING] == []


def test_the_list_of_missing_numbers_only_shrinks() -> None:
    assert set(MISSING) <= set(NUMBERS)
    assert len([number for number in MISSING if number not in _shown()]) <= MOST_MISSING
