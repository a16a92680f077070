"""The pictures: plots say what the benchmarks page says, and every picture can be shown inside a page."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from docs.pictures.film import film
from docs.pictures.plots import DIRECTORY, PAGE, plots
from docs.pictures.recording import SCENES
from docs.pictures.tables import table_with
from docs.pictures.terminal import Terminal
from tests.docs.pages import ROOT, own_files

PICTURES = [path for path in own_files() if path.suffix == ".svg"]
_SVG = "{http://www.w3.org/2000/svg}"


def test_plots_are_current() -> None:
    for name, text in plots(PAGE.read_text(encoding="utf-8")).items():
        assert (DIRECTORY / name).read_text(encoding="utf-8") == text, "run `make pictures`"


def test_a_number_is_read_from_the_row_and_column_that_a_plot_names() -> None:
    table = table_with("a\n\n| what | `MB/s` |\n|---|---|\n| x `y` | 1,234.5 (best) |\n| z | - |\n", "MB/s")
    assert table.number("x y", "MB/s") == 1234.5
    for row, column in (("z", "MB/s"), ("x", "MB/s"), ("x y", "s")):
        with pytest.raises(KeyError):
            table.number(row, column)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_a_picture_has_a_title_and_needs_nothing_else(picture: Path) -> None:
    """A page shows it as an image: scripts do not run there, and other files are not loaded."""
    text = picture.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)  # noqa: S314 - our own file
    assert root.findtext(f"{_SVG}title")
    assert {"viewBox", "width", "height"} <= set(root.keys())
    assert not re.search(r"<script|href=|@import|<foreignObject", text)
    assert re.findall(r"url\((.)", text) == ["#"] * text.count("url(")


def test_every_picture_is_on_a_page() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in own_files() if path.suffix == ".md")
    for picture in PICTURES:
        assert re.search(rf"!\[[^\]]{{10,}}\]\([^)]*{re.escape(picture.name)}\)", pages), picture.relative_to(ROOT)


def test_the_recording_shows_its_scenes_and_a_proven_restore() -> None:
    root = ElementTree.fromstring((DIRECTORY / "recording.svg").read_text(encoding="utf-8"))  # noqa: S314
    lines = ["".join(line.itertext()) for line in root.iter(f"{_SVG}text")]
    assert {f"$ {scene.typed}" for scene in SCENES} <= set(lines)
    assert any(re.fullmatch(r"OK  restore \d+ of backup \d+: proven", line) for line in lines)


def lines_at(terminal: Terminal, moment_s: float) -> list[str]:
    """What a reader sees at a moment."""
    seen = [v for v in terminal.versions if v.seen_s <= moment_s and (v.gone_s is None or moment_s < v.gone_s)]
    return ["".join(run for run, _ in version.runs) for version in sorted(seen, key=lambda each: each.row)]


def test_a_terminal_shows_what_was_there_at_each_moment() -> None:
    terminal = Terminal(columns=10)
    terminal.write("$ logkeep\ncopy: 0%", 1.0)
    terminal.write("\r\x1b[Kcopy: 100%", 2.0)
    terminal.write("\r\x1b[K\x1b[32mOK\x1b[0m  done\x07\nlonger than ten", 3.0)
    assert lines_at(terminal, 0.5) == []
    assert lines_at(terminal, 1.5) == ["$ logkeep", "copy: 0%"]
    assert lines_at(terminal, 2.0) == ["$ logkeep", "copy: 100%"]
    assert lines_at(terminal, 9.0) == ["$ logkeep", "OK  done", "longer tha", "n ten"]
    (state,) = (version for version in terminal.versions if version.row == 1 and version.gone_s is None)
    assert state.runs == (("OK", "green"), ("  done", ""))


def test_a_film_without_motion_is_its_last_picture() -> None:
    terminal = Terminal(columns=20)
    terminal.write("<first>\nlive", 1.0)
    terminal.write("\r\x1b[Kend\nlast", 2.0)
    text = film("a film", terminal.versions, 20, rows=2)
    hidden = set(re.findall(r"\.(v\d)\{visibility:hidden;", text))
    shown = {m[1]: m[2] for m in re.finditer(r'<g class="(v\d)">(.*?)</g>', text)}
    assert {name: "live" in lines for name, lines in shown.items()} == {name: name in hidden for name in shown}
    assert "&lt;first&gt;" in text
    assert ".scroll{transform:translateY(-18px);" in text
