"""Every sentence that zkbackup can print has a Chinese form: errors, remedies, findings, progress."""

import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

import logkeep
from logkeep.cli.terminal.chinese import CHINESE, SENTENCES
from logkeep.cli.terminal.messages import chinese
from logkeep.cli.terminal.sentences import HOLE, values_between
from logkeep.cli.zkbackup.error_text import remedy
from logkeep.errors import LogkeepError
from tests.support.code_sentences import labels_of, sentences_of

_SOURCES = Path(logkeep.__file__).parent
_MODULES = (
    "cli/zkbackup/*.py", "cli/zkbackup/verification/*.py", "cli/frame/error_text.py", "cli/terminal/console.py",
    "config/document.py",
    "config/file_text.py", "config/load.py", "config/time_text.py", "directories/folder.py",
    "directories/group_rights.py", "directories/owner_process.py", "directories/path_walk.py",
    "embedded/ports.py", "embedded/process.py",
    "embedded/refusal.py", "file_owners.py", "formats/zookeeper/jute.py", "formats/zookeeper/compression.py",
    "formats/zookeeper/snapshot.py", "formats/zookeeper/transactions.py", "formats/zookeeper/txnlog.py",
    "formats/zstd_frames.py", "store/base.py", "store/local/*.py", "zookeeper/backup/*.py",
    "zookeeper/bundle/*.py", "zookeeper/model/*.py", "zookeeper/repair/*.py", "zookeeper/restore/*.py",
    "zookeeper/restore/target/*.py",
    "zookeeper/server/four_letter.py", "zookeeper/timeline/*.py", "zookeeper/verify/*.py",
)  # fmt: skip
"""Where the sentences of zkbackup are made."""
_OTHER_MODULES = {
    "zookeeper/backup/admin_snapshot.py", "zookeeper/backup/preview.py",  # verbs of logkeep only
    "zookeeper/restore/drill.py", "zookeeper/restore/receipts.py",
    "zookeeper/bundle/texts.py",  # what they write are files of a backup: in English
    "cli/zkbackup/main.py", "cli/zkbackup/declarations.py", "cli/zkbackup/metrics.py",  # help: another test; metrics
}  # fmt: skip
_NOT_SENTENCES = re.compile(
    r"""
    \s*(zkbackup|zkServer.sh|zkCli.sh|echo\ srvr|logkeep\ |import\ sys).*  # commands
    | --zk-\S+\ \{\}.* | \ --zk-host\ \{\} | \{\}\ --level\ \{\}
    | \{\}\ verified\ at\ level.* | A\ restore\ .* | Do\ not\ delete.*  # lines of files
    | (Cannot|Could|Disk|Error|Input|No\ space|Permission|Read-only|Too)[\ /].*  # lines of a server's log
    | error\ while\ loading.*
    | exiting\ abnormally | in\ thread\ .* | insufficient\ memory\ .*
    | sync\ (file|directory) | own\ directory  # steps at which tests stop
    | no\ backups:\ \{\} | type\ \{\}\ to\ continue | \{\}\ at\ \{\} | 0x\{\}\ to\ 0x\{\} | \{\}\ ms
    | .*`logkeep\ config\ validate`.* | run\ `logkeep\ zookeeper\ repair`.*  # only `logkeep` prints them
    """,
    re.VERBOSE | re.DOTALL,
)


def _modules() -> Iterator[Path]:
    for pattern in _MODULES:
        for path in _SOURCES.glob(pattern):
            if str(path.relative_to(_SOURCES)) not in _OTHER_MODULES:
                yield path


def _made() -> set[str]:
    made = {text for path in _modules() for text in sentences_of(path)}
    made |= {label for path in _modules() for label in labels_of(path)}
    return {text for text in made if not _NOT_SENTENCES.fullmatch(text)}


def test_every_sentence_of_the_code_has_a_translation() -> None:
    missing = {text for text in _made() if text not in SENTENCES and text not in CHINESE}
    assert not missing


_OF_LOGKEEP = re.compile(
    "bootstrap|sasl|ssl|[kK]afka|Java|broker|topic|endpoint|conditional|log.dirs|larger id|parallel|command-config"
    "|process per"
)


def _remedies() -> Iterator[str]:
    """As zkbackup prints them; those about Kafka, Spark and repositories never are."""
    waiting = [LogkeepError]
    while waiting:
        kind = waiting.pop()
        waiting += [each for each in kind.__subclasses__() if each.__module__ == LogkeepError.__module__]
        if not _OF_LOGKEEP.search(kind.remedy):
            yield remedy(kind("it failed"))


def test_every_remedy_of_an_error_has_a_translation() -> None:
    assert not {text for text in _remedies() if text not in SENTENCES and text not in CHINESE}


@pytest.mark.parametrize("english", SENTENCES)
def test_a_translation_has_the_same_values_and_no_others(english: str) -> None:
    fields = [name for _, name, _, _ in string.Formatter().parse(SENTENCES[english]) if name is not None]
    numbers = sorted(range(len(fields)) if set(fields) <= {""} else map(int, fields))
    expected = english.count(HOLE) - (2 if "more problem" in english else 0)  # Chinese has no plural
    assert numbers == [*range(expected)]
    assert re.search(r"[\u4e00-\u9fff]", SENTENCES[english]) or english in {"epoch {}", "zxid {}"}


@pytest.mark.parametrize(
    ("english", "expected"),
    [
        ("no log holds 0x1 to 0x5", "没有日志包含 0x1 到 0x5"),
        ("nothing proves that an epoch ended with 0x7 before 0x9", "无法证明有 epoch 在 0x9 之前结束于 0x7"),
        ("0x0 to 0x1d (2023-11-14T22:13:20.029Z)", "0x0 到 0x1d (2023-11-14T22:13:20.029Z)"),
        ("--timeout must be a duration such as 10s, 5m, 24h or 7d, not 'x'",
         "--timeout 必须是时长，例如 10s、5m、24h 或 7d，而不是 'x'"),
        ("the file cannot be read: permission denied", "无法读取文件: 权限不足"),
        ("zoo.cfg: it cannot be read (permission denied)", "zoo.cfg: 无法读取（权限不足）"),
        ("3 nodes with a time to live would be removed by ZooKeeper 3.4.14",
         "3 个节点（有存活时间） 会被 ZooKeeper 3.4.14 删除"),
        ("its end cannot be restored: transaction 0x7 is not archived; what can: 0x1 to 0x6",
         "末尾无法恢复: 备份中没有事务 0x7；可以恢复: 0x1 到 0x6"),
        ("something that no catalogue has", "something that no catalogue has"),
        ("a name {0} with {braces} cannot be a backup id", "a name {0} with {braces} 不能作为备份 ID"),
    ],
)  # fmt: skip
def test_sentences_with_values(english: str, expected: str) -> None:
    assert chinese().sentence(english) == expected


@pytest.mark.parametrize("part", ["unexpected ", "a: ", "b; ", "it cannot be read: ", " to at: ; and is cannot be "])
def test_a_value_that_looks_like_many_sentences(part: str) -> None:
    """Names in files can have any words."""
    value = part * (4_000 // len(part))
    assert chinese().sentence(f"unknown key {value}").startswith("未知的键 ")
    assert chinese().sentence(value * 100) == value * 100
    assert values_between(["a ", " b ", " c"], value) is None


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("archived transactions are gone (lost 0x4 to 0x31)", "已备份的事务丢失（丢失 0x4 到 0x31）"),
        (
            "logs do not reach 0x31, where its tree becomes exact (behind zxid 0x0)",
            "日志没有到达 0x31，其数据树在那里才精确（在 zxid 0x0 之后）",
        ),
        ("a name that no catalogue has (lost 0x4 to 0x31)", "a name that no catalogue has (lost 0x4 to 0x31)"),
    ],
)
def test_a_finding_with_its_place_is_translated(printed: str, shown: str) -> None:
    """The place is added to the sentence, in brackets."""
    assert chinese().sentence(printed) == shown
