"""The commands of README.md and of every guide run as printed, in order, in an empty directory with an empty home."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import QUIET_FENCES, ROOT, Command, fences, fits, not_run, steps
from tests.docs.scenes import SCENES
from tests.docs.shell import Typed, type_in

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
NOT_RUN = {"kafka-restore-offline.md": 2, "spark-clusters.md": 3}
"""By page, commands that need what a page cannot have: a cluster of several machines, a broker that is stopped halfway
(tests/integration/kafka/restore/test_to_log_dirs.py types those). Everything else runs."""

_MAKE = re.compile(r"^make (?P<target>[a-z]+)", re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_do_what_the_page_says(page: Path, tmp_path: Path) -> None:
    wanted = [s for s in steps(page.read_text()) if not (isinstance(s, Command) and _MAKE.match(s.text))]
    typed = type_in(wanted, tmp_path)
    wrong = [said for one in typed if (said := _wrong(one))]
    assert not wrong, f"{page.relative_to(ROOT)}\n" + "\n".join(wrong)
    assert len(typed) == len(wanted), "the shell ended early"


def _wrong(typed: Typed) -> str:
    step = typed.step
    code, output = (step.code, step.output) if isinstance(step, Command) else (0, None)
    if typed.code != code:
        return f"line {step.line}: ended with {typed.code} instead of {code}\n{step}\n{typed.printed}"
    if output is not None and not fits(output, typed.printed):
        return f"line {step.line}: printed something else\n{step}\n{typed.printed}"
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_no_command_hides_from_the_tests(page: Path) -> None:
    text = page.read_text()
    assert not_run(text) == NOT_RUN.get(page.name, 0)
    for fence in fences(text):
        first = (fence.info.split() or [""])[0]
        assert first in {"console", "sh"} | QUIET_FENCES, f"line {fence.line}: what is ```{fence.info} for?"
        assert first not in QUIET_FENCES or "\n$ " not in f"\n{fence.body}", (
            f"line {fence.line}: a command that is not run"
        )


def test_guides_run_something() -> None:
    assert sum(isinstance(s, Command) for page in PAGES for s in steps(page.read_text())) > 50


def test_every_scene_is_played() -> None:
    played = set(re.findall(r"<!-- scene: ([a-z-]+) -->", "".join(p.read_text() for p in PAGES)))
    assert played == SCENES.keys()


def test_make_targets_that_pages_name_exist_and_ci_runs_the_readmes_own() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    readme = (ROOT / "README.md").read_text()
    typed = {m["target"] for f in fences(readme) for m in _MAKE.finditer(f.body.replace("$ ", ""))}
    assert {"demo", "test", "install"} <= typed <= targets
    assert (ROOT / ".ci" / "run").read_text().rstrip().endswith("exec make test")


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        (("a … c",), "a b c\n", True),
        (("a … c",), "a b d\n", False),
        (("a", "…", "z"), "a\nb\nc\nz\n", True),
        (("a", "…", "z"), "a\nz\n", True),
        (("a", "z"), "a\nb\nz\n", False),
        (("a",), "a\nb\n", False),
        (("a b",), "a\nb\n", False),
        (("a   …    c",), "a  bb  c\n", True),
        (("a   c",), "a  c\n", False),
        (("   a: …",), "  a: b\n", False),
        (("a   …",), "ab\n", False),
    ],
)
def test_placeholders(expected: tuple[str, ...], printed: str, same: bool) -> None:
    assert fits(expected, printed) is same


def test_a_part_of_what_a_block_prints_is_compared(tmp_path: Path) -> None:
    block = "```sh\necho one\necho two\necho three\n```\n"
    page = f"{block}```text printed\nt…o\n```\n{block}\nand\n\n```text printed\nfour\n```\n{block}"
    typed = type_in(steps(page), tmp_path)
    assert [bool(_wrong(one)) for one in typed] == [False, True, False]


def test_a_wrong_code_and_a_wrong_output_are_seen(tmp_path: Path) -> None:
    first = "```console\n$ false\n$ echo one\ntwo\n$ cd /; false || true\n```\n"
    page = first + "```console exits=3\n$ pwd; (exit 3)\n/\n```\n"
    typed = type_in(steps(page), tmp_path)
    assert [bool(_wrong(one)) for one in typed] == [True, True, False, False]
