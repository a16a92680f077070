"""zkbackup in Chinese: for people who set that language, complete, and only where people read."""

import ast
import json
import re
import string
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import logkeep.cli
from logkeep.cli.frame.command_groups import LazyGroup
from logkeep.cli.frame.error_text import as_text
from logkeep.cli.frame.translated_help import TranslatedHelp
from logkeep.cli.terminal.boxes import title
from logkeep.cli.terminal.chinese import CHINESE
from logkeep.cli.terminal.messages import ENGLISH, Translation, language_of, words
from logkeep.cli.terminal.text import TerminalStyle, cell_width
from logkeep.cli.zkbackup.main import COMMANDS
from logkeep.cli.zkbackup.main import PROGRAM as ZKBACKUP
from logkeep.errors import UsageError
from tests.support.cli.bundle_documents import PROGRAM, put, zkbackup
from tests.support.cli.processes import clean_environment
from tests.support.zookeeper.handmade_directories import MadeServer

SOURCES_REMEDY = "run as the user of the server, or as a member of a group that may read its directories"
ZH = {"LC_ALL": "zh_CN.UTF-8"}
CJK = re.compile(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]")
_SOURCES = Path(logkeep.cli.__file__).parent
_TEXT_AT = {"say": 0, "message": 0, "labelled": 0, "plural": 1}
"""Which argument of a call is a text."""


def _keys(source: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.read_text())):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.func if isinstance(node.func, ast.Call) else node.func
        name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
        at = 0 if name == "words" and called is not node.func else _TEXT_AT.get(name)
        given = node.args[at] if at is not None and len(node.args) > at else None
        if isinstance(given, ast.Constant):
            yield str(given.value)


def _fields(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)


def test_no_text_is_missing_and_none_is_left_over() -> None:
    shared = ("terminal/boxes.py", "terminal/console.py", "terminal/progress.py", "frame/error_text.py")
    sources = [*(_SOURCES / "zkbackup").glob("*.py"), *(_SOURCES / each for each in shared)]
    printed = {key for source in sources for key in _keys(source)}
    assert {key for key in printed | _help_texts() if " " in key or key in CHINESE} == set(CHINESE)


class _Recording(Translation):
    """Texts as they are, and which ones were printed."""

    def __init__(self) -> None:
        super().__init__({})
        self.printed: set[str] = set()

    def __call__(self, text: str, /, **values: object) -> str:
        self.printed.add(text)
        return super().__call__(text, **values)


def _help_texts() -> set[str]:
    """All texts of all pages; a default of one word is a value, not a text."""
    say = _Recording()
    group = click.version_option("1")(LazyGroup(COMMANDS, {}, help=ZKBACKUP.help))
    for command in (group, *(entry.load() for entry in COMMANDS)):
        command.format_help(click.Context(command, info_name="zkbackup"), TranslatedHelp(say, 80))
    return say.printed


def test_help_is_translated_and_fits_the_terminal(tmp_path: Path) -> None:
    page = zkbackup("backup", "--help", home=tmp_path, env=ZH).stdout
    assert page.startswith("用法: zkbackup backup [OPTIONS]\n\n  在线备份一台服务器。\n\n  先复制 snapshot")
    assert "ZooKeeperdataDir路径，或其中的version-2目录。" in re.sub(r"\s", "", page)
    assert "默认: 数据目录" in page
    assert "退出码:" in page
    assert max(cell_width(line) for line in page.splitlines()) <= 80
    assert not CJK.search(zkbackup("backup", "--help", home=tmp_path).stdout)
    assert re.search("命令:\n  backup +在线备份一台服务器。", zkbackup("--help", home=tmp_path, env=ZH).stdout)


@pytest.mark.parametrize("english", CHINESE)
def test_a_translation_has_the_same_values(english: str) -> None:
    expected = _fields(english) or (["count"] if "{count}" in CHINESE[english] else [])
    assert _fields(CHINESE[english]) == expected


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW"}, "zh"),
        ({"LANG": "zh"}, "zh"),
        ({"LANG": "zha_CN.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "en_US.UTF-8", "LC_ALL": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "", "LC_MESSAGES": ""}, "zh"),
    ],
)
def test_the_first_variable_that_is_set_decides(environ: dict[str, str], expected: str) -> None:
    assert language_of(environ) == expected


def test_english_where_the_output_cannot_show_chinese(tmp_path: Path) -> None:
    assert words(TerminalStyle(unicode=False, language="zh")) is ENGLISH
    put(tmp_path, "one")
    for environ in ({"LC_ALL": "zh_CN.GBK"}, {"LC_ALL": "", "LANG": "zh_CN"}):
        said = zkbackup("list", "--backup-base-dir", str(tmp_path), home=tmp_path, env=environ).stdout
        assert "Backups: 1" in said
        assert said.isascii()


def test_columns_count_what_a_terminal_shows(tmp_path: Path) -> None:
    for status in ("valid", "partial", "damaged"):
        put(tmp_path, f"of-{status}", status=status)
    said = zkbackup("list", "--backup-base-dir", str(tmp_path), home=tmp_path, env=ZH).stdout
    assert "ZooKeeper 备份列表" in said
    assert "总备份数: 3" in said
    assert {word for word in ("有效", "部分", "损坏") if f"{word}" in said} == {"有效", "部分", "损坏"}
    table = [line for line in said.splitlines() if line.startswith(("┌", "│", "├", "└"))]
    assert len({cell_width(line) for line in table}) == 1
    assert len(table) == 7
    assert {cell_width(line) for line in title("清理旧备份")[:3]} == {62}
    say = words(TerminalStyle(unicode=True, language="zh"))
    labels = ("Directory", "ZooKeeper", "Schemes", "Config", "Took", "Data dir", "Receipt", "Server at")
    assert {cell_width(say.labelled(label, "")) for label in labels} == {12}


def test_a_backup_with_all_its_commands(tmp_path: Path) -> None:
    """What people read is Chinese; JSON, logs, metrics and files are those of an English run."""
    server = MadeServer(tmp_path / "zk")
    server.log(range(1, 30), creating=True)
    server.snapshot(29, nodes=range(1, 30))
    base = f"--backup-base-dir={tmp_path / 'out'}"
    places = f"--zk-data-dir={server.root / 'data'}", "--zk-host=127.0.0.1:1", f"--output-dir={tmp_path / 'out'}"
    told = f"--metrics-file={tmp_path / 'metrics'}"
    done = zkbackup("backup", *places, "--backup-id=one", told, "--verbose", home=tmp_path, env=ZH)
    assert done.returncode == 2
    assert "⚠️ 备份完成，有警告: one" in done.stdout
    assert "\n目录:       /" in done.stdout
    logs, progress = (
        [line for line in done.stderr.splitlines() if bool(re.match(r"\d{4}-", line)) is logged]
        for logged in (True, False)
    )
    assert logs
    assert not any(map(CJK.search, logs))
    assert re.search(r"^快照: 1/1 个单元, .* / .*, 耗时 ", "\n".join(progress), re.MULTILINE)
    assert "警告 127.0.0.1:1: 无法向服务器询问其最后的 zxid" in done.stdout
    assert "建议: 请用 --zk-host 指定正在运行的服务器" in done.stdout
    assert (
        "整体评估: ✅ 备份可用" in zkbackup("verify", f"--backup-dir={tmp_path}/out/one", home=tmp_path, env=ZH).stdout
    )
    assert "备份质量评分: 100/100" in zkbackup("info", "one", base, home=tmp_path, env=ZH).stdout
    assert "清理策略: 保留 7 天，最少 3 个" in zkbackup("prune", "--dry-run", base, home=tmp_path, env=ZH).stdout
    for path in tmp_path.rglob("*"):
        if path.suffix in {".json", ".txt", ".log"} or path.name == "metrics":
            assert not CJK.search(path.read_text()), path
    for words_ in (["list", base], ["info", "one", base], ["prune", "--dry-run", base]):
        chinese, english = (zkbackup(*words_, "--format=json", home=tmp_path, env=env).stdout for env in (ZH, {}))
        assert json.loads(chinese) == json.loads(english)
        assert not CJK.search(chinese)
    failed = zkbackup("info", "two", base, "--format=json", home=tmp_path, env=ZH)
    assert json.loads(failed.stderr)["error"] == "unknown-backup"
    assert not CJK.search(failed.stderr)


def test_errors(tmp_path: Path) -> None:
    failed = zkbackup("list", "--backup-base-dir", "nowhere", home=tmp_path, env=ZH)
    what, where, remedy = failed.stderr.splitlines()
    assert what == " 错误: 备份目录不存在"
    assert where.startswith(" 位置: /")
    assert remedy == " 建议: 使用 --backup-base-dir 指定，或在 zkbackup.yaml 中设置 backup.base_dir"


def test_a_long_error_is_wrapped_by_display_width() -> None:
    error = UsageError("there is no snapshot and no log", subject="/var/zk", remedy=SOURCES_REMEDY)
    style = TerminalStyle(width=40, unicode=True, language="zh")
    lines = as_text(error, style, words(style)).splitlines()
    assert max(map(cell_width, lines)) <= 40
    assert len(lines) > 3
    assert all(line.startswith(("       ", " 建议: ")) for line in lines[2:])


def test_a_process_with_that_locale(tmp_path: Path) -> None:
    """Whether this machine knows the locale or not."""
    put(tmp_path, "one")
    command = [*PROGRAM, "list", "--backup-base-dir", str(tmp_path)]
    environ = clean_environment(tmp_path, LANG="zh_CN.UTF-8")
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, check=True, timeout=120)
    assert "总备份数: 1" in done.stdout.decode()
