"""YAML files: strict, with file and line in every refusal."""

import os
from collections.abc import Container
from pathlib import Path

import pytest

from logkeep.config.document import ConfigEntry, parse_document
from logkeep.config.file_text import read_text
from logkeep.errors import ConfigError


def _write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "logkeep.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read_document(path: Path, leaves: Container[str], *, required: bool = False) -> list[ConfigEntry] | None:
    content = read_text(path, required=required)
    return None if content is None else parse_document(content.text, path, leaves)


def test_values_with_their_lines(tmp_path: Path) -> None:
    path = _write(tmp_path, "# head\nrepository:\n  url: file:///x\nengine:\n  spark_conf: {spark.a: 1}\nempty:\n")
    assert read_document(path, {"engine.spark_conf"}) == [
        ConfigEntry("repository.url", "file:///x", 3),
        ConfigEntry("engine.spark_conf", {"spark.a": 1}, 5),
        ConfigEntry("empty", None, 6),
    ]


def test_missing_and_empty(tmp_path: Path) -> None:
    assert read_document(tmp_path / "none.yaml", ()) is None
    assert read_document(_write(tmp_path, "# nothing\n"), ()) == []
    with pytest.raises(ConfigError, match="no such configuration file"):
        read_document(tmp_path / "none.yaml", (), required=True)


@pytest.mark.parametrize(
    ("text", "what", "line"),
    (
        ("a: 1\na: 2\n", "'a' twice", ":2"),
        ("s:\n  k: 1\n  k: 2\n", "'k' twice", ":3"),
        ("c:\n  m: {x: 1, x: 2}\n", "'x' twice", ":2"),
        ("a: &x 1\nb: *x\n", "anchor", ":1"),
        ("a: &x {k: 1}\nb: {<<: *x}\n", "anchor", ":1"),
        ("- a\n", "mapping of sections", ":1"),
        ("just text\n", "mapping of sections", ":1"),
        ("? [a]\n: 1\n", "not plain text", ":1"),
        ("a: !!python/object/apply:os.system [true]\n", "not valid YAML", ":1"),
        ("a: 1\n---\nb: 2\n", "not valid YAML", ":2"),
        ("a: [1\nb: 2\n", "not valid YAML", ":"),
        ("a: 1\n\tb: 2\n", "not valid YAML", ":2"),
        ("a: \x01\n", "not valid YAML", ""),
        (b"a: \xff\n", "not UTF-8", ""),
        ("a: " + "[" * 50_000 + "\n", "nested too deeply", ""),
        ("a: " + "x" * 300_000, "larger than", ""),
        ("a: 2026-13-45\n", "not valid YAML", ""),
    ),
)
def test_refusals(tmp_path: Path, text: str | bytes, what: str, line: str) -> None:
    path = _write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read_document(path, {"c.m"})
    assert what in caught.value.what
    assert caught.value.subject.startswith(f"{path}{line}")
    assert caught.value.exit_code == 40


def test_a_directory_in_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "logkeep.yaml").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        read_document(tmp_path / "logkeep.yaml", ())
    assert os.listdir(tmp_path) == ["logkeep.yaml"]  # noqa: PTH208  names are all we compare
