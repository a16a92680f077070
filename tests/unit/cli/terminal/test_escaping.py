"""Values as text: nothing in them controls a terminal, begins a line or fills the screen."""

import dataclasses
import json
import re
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import logkeep.cli
from logkeep.cli.terminal.escaping import LONGEST, shown, shown_values, without_controls
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.model.printable_text import printable, safe_json
from tests.support.hostile.corpus import LONG, STRINGS, SURROGATE, TEXT, problems


class _Word(StrEnum):
    GOOD = "good"


class _Inner(msgspec.Struct, frozen=True):
    several_lines: ClassVar = ("steps",)
    names: tuple[str, ...]
    steps: str


@dataclasses.dataclass(frozen=True)
class _Outer:
    inner: _Inner
    by_name: dict[str, list[str]]
    path: Path
    word: _Word = _Word.GOOD
    number: int | None = None


@pytest.mark.parametrize("text", (*STRINGS, SURROGATE, TEXT))
def test_each_string_of_the_corpus(text: str) -> None:
    assert problems(text) != []
    assert problems(printable(text)) == []
    assert printable(printable(text)) == printable(text)


@given(st.text(st.characters()))
def test_what_is_printed_can_be_encoded_and_is_one_line(text: str) -> None:
    assert problems(shown(text)) == []
    assert len(shown(text).encode().decode().splitlines()) <= 1


def test_letters_of_all_languages_stay() -> None:
    assert printable("größe 日本語 файл عربى é") == "größe 日本語 файл عربى é"


def test_a_long_name_is_shortened_and_a_path_is_not() -> None:
    assert shown("d" * LONGEST) == "d" * LONGEST
    assert shown(LONG) == f"{'N' * (LONGEST - 1)}…"
    assert len(shown("\x1b" * LONGEST)) == LONGEST


def test_every_text_of_a_report() -> None:
    report = _Outer(_Inner((TEXT, "ok"), f"1. stop\n2. {TEXT[:20]}"), {TEXT: [LONG]}, Path(f"/{TEXT[1:50]}"))
    safe = shown_values(report)
    assert problems(str(safe.inner.names) + str(safe.by_name) + str(safe.path)) == []
    assert safe.inner.steps.split("\n")[0] == "1. stop"
    assert (safe.word, safe.number, safe.inner.names[1]) == (_Word.GOOD, None, "ok")


def test_colours_are_ours_where_the_stream_has_them() -> None:
    painted = TerminalStyle(colour=True).paint("OK", "green")
    assert without_controls(f"{painted}\nnext", colour=True) == f"{painted}\nnext"
    assert without_controls(painted, colour=False) == "\\x1b[32mOK\\x1b[0m"
    assert without_controls("\x1b[35mpink\x1b[2J", colour=True) == "\\x1b[35mpink\\x1b[2J"


def test_json_has_the_same_values() -> None:
    document: dict[str, Any] = {"a": TEXT, "b": SURROGATE, "c": "größe"}
    text = safe_json(json.dumps(document, ensure_ascii=False))
    assert problems(text) == []
    assert json.loads(text) == document
    assert "größe" in text


def test_finished_text_has_few_doors() -> None:
    """`answer` and `show` of the console keep newlines: only the frame calls them, and texts made of escaped lines."""
    cli = Path(logkeep.cli.__file__).parent
    found = {
        str(path.relative_to(cli))
        for path in cli.rglob("*.py")
        if re.search(r"console\.(answer|show)\(", path.read_text())
    }
    escaped = {"verbs/kafka/offset_map.py", "zkbackup/prune.py", "zkbackup/restore.py"}
    assert found == {"frame/execute.py", "frame/logs.py", "frame/program.py"} | escaped
