"""All pages: links lead somewhere, nothing of anybody's machine is in them, and no verb or option is missing."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

from logkeep.cli.frame.catalogue import VERBS
from logkeep.config.options import OPTIONS
from tests.docs.pages import ROOT, links, own_files

PAGES = [p for p in own_files() if p.suffix == ".md"]
_OWN = [p for p in own_files() if p.suffix in {".md", ".toml", ".lock", ".in", ".yaml"} or p.name == "Makefile"]
_MACHINE_PATH = re.compile(r"(?<![\w.$~/])/(?:home|root|work|workspace|Users|tmp|mnt|builds?)(?=/|\b)")
_HOST = re.compile(r"https?://(?P<host>[A-Za-z0-9.-]+)")
_NAMED_FILE = re.compile(r"`((?:tests|benchmarks)/[\w/.]+|test_\w+\.py)")
_EXAMPLE_HOSTS = {"host", "localhost", "127.0.0.1"}
"""Hosts of examples. A real address goes stale, or tells where somebody works."""
_SOURCES = {
    "docs/comparison.md": {"github.com", "kafka.apache.org", "cwiki.apache.org", "zookeeper.apache.org"},
    "tests/support/oso/Cargo.lock": {"github.com"},  # cargo's own name of the public registry, whatever mirror is used
}
"""By page, public hosts that it cites: what is said of other tools needs a source."""


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    cited = _SOURCES.get(_name(page), set())
    for link in links(page.read_text(encoding="utf-8")):
        if (host := _HOST.match(link)) and host["host"] in cited:
            continue
        target, _, anchor = unquote(link).partition("#")
        assert "://" not in link, f"{link}: pages link to pages"
        to = (page.parent / target).resolve() if target else page
        assert to.exists(), f"{link} leads nowhere"
        assert to.is_relative_to(ROOT), f"{link} leads out of the repository"
        if anchor:
            assert anchor in _anchors(to), f"{link}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_tests_that_a_page_names_exist(page: Path) -> None:
    """SECURITY.md and docs/proven.md say which test shows what."""
    for named in _NAMED_FILE.findall(page.read_text(encoding="utf-8")):
        assert any(ROOT.glob(named if "/" in named else f"tests/**/{named}")), named


def _anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", _OWN, ids=_name)
def test_nothing_of_anybodys_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not _MACHINE_PATH.findall(text)
    hosts = {m["host"] for m in _HOST.finditer(text)}
    assert hosts <= _EXAMPLE_HOSTS | _SOURCES.get(_name(path), set())


@pytest.mark.parametrize("lock", sorted((ROOT / "requirements").glob("*.lock")), ids=_name)
def test_locks_hold_hashes_and_no_addresses(lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    assert "index-url" not in text
    pinned = len(re.findall(r"^[A-Za-z0-9._-]+(?:\[[^\]]*\])?==", text, re.M))
    assert pinned > 0
    assert text.count("--hash=sha256:") >= pinned


def test_every_page_is_reached_from_the_index() -> None:
    start = ROOT / "docs" / "index.md"
    reached, waiting = {start}, [start]
    while waiting:
        page = waiting.pop()
        ours = [link for link in links(page.read_text(encoding="utf-8")) if "://" not in link]
        found = {(page.parent / link.partition("#")[0]).resolve() for link in ours}
        new = {p for p in found if p.suffix == ".md"} - reached
        reached |= new
        waiting += new
    notes = {p for p in PAGES if p.parent.name == "changes.d"}  # they come and go with each release
    assert set(PAGES) - notes <= reached


def test_every_verb_is_in_the_reference() -> None:
    commands = (ROOT / "docs" / "reference" / "commands.md").read_text()
    for entry in VERBS:
        assert f"\n## logkeep {entry.words}\n" in commands
        for option in entry.load().options:
            assert option.spellings()[0].flag in commands, f"{entry.words}: {option.name}"


def test_every_option_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "options.md").read_text()
    for option in OPTIONS:
        for spelling in option.spellings():
            assert not spelling.flag or re.search(rf"[` ]{spelling.flag}[` ]", page), option.name
            assert not spelling.key or f"`{spelling.key}`" in page, option.name
            assert all(f"`{variable}`" in page for variable in spelling.variables), option.name


def test_change_notes_are_there_and_speak_to_users() -> None:
    notes = [p for p in (ROOT / "changes.d").iterdir() if p.name != "README.md"]
    assert notes
    for note in notes:
        assert re.fullmatch(r"[a-z0-9-]+\.md", note.name)
        assert len(note.read_text().split()) >= 10, note.name


def test_decisions_are_short_and_complete() -> None:
    for page in (ROOT / "docs" / "decisions").glob("0*.md"):
        text = page.read_text()
        assert len(text.splitlines()) <= 30
        assert all(f"**{part}.**" in text for part in ("Context", "Decision", "Consequences")), page.name
        assert text.startswith(f"# {page.name[:4]} ")


def test_alert_rules_say_what_to_do() -> None:
    rules = yaml.safe_load((ROOT / "docs" / "alerts" / "logkeep.rules.yaml").read_text())
    assert all(rule["annotations"]["description"] for group in rules["groups"] for rule in group["rules"])
