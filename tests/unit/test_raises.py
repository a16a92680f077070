"""Nothing that a user, a server, a store or a host can cause ends with 1: every exception that is made was reviewed.

The source is walked for exceptions that end a command with 1 when nothing catches them. Those that a rule below cannot
judge are in `REVIEWED`, with their number: whoever makes a new one decides there, or chooses a class of
`logkeep.errors` with an exit code of its own.
"""

import ast
import builtins
import functools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import logkeep
from logkeep import errors

SOURCE = Path(logkeep.__file__).parent
CODED = {n for n, c in vars(errors).items() if isinstance(c, type) and issubclass(c, errors.LogkeepError)} - {
    "LogkeepError"
}
BUILTIN = {n: c for n, c in vars(builtins).items() if isinstance(c, type) and issubclass(c, BaseException)}
BUGS = {"AssertionError", "NotImplementedError", "TypeError"}
"""By their nature faults of this program."""

OPTION = "config.load names the option, its place and the value"
DECODED = "of a document: the decoder makes a ValidationError of it, and its reader Damaged"
OURS = "a fault of ours: no user, server, store or disk decides this value"
REVIEWED: dict[tuple[str, str], tuple[int, str]] = {
    ("config/option.py", "ValueError"): (2, OPTION),
    ("config/option_types.py", "ValueError"): (9, OPTION),
    ("config/secrets.py", "ValueError"): (1, OPTION),
    ("config/topic_retention.py", "ValueError"): (3, OPTION),
    ("config/time_text.py", "ValueError"): (2, OPTION),
    ("cli/zkbackup/options.py", "ValueError"): (1, OPTION),
    ("application/program.py", "ArgumentTypeError"): (1, "argparse shows it: exit 2 of a user's own program"),
    ("application/context.py", "KeyError"): (1, "of a user's handler: its command is rejected"),
    ("cli/frame/metrics.py", "ValueError"): (2, "caught in the module: ConfigError"),
    ("cli/zkbackup/claims.py", "ValueError"): (1, "its readers call the backup damaged"),
    ("checkpoint/zeebe/repo/record.py", "ValueError"): (1, DECODED),
    ("model/ranges.py", "ValueError"): (1, DECODED),
    ("model/time.py", "ValueError"): (1, DECODED),
    ("repository/restores/documents.py", "ValueError"): (2, DECODED),
    ("zookeeper/repo/record.py", "ValueError"): (1, DECODED),
    ("kafka/registry/schemas_topic.py", "ValidationError"): (2, "caught in the module: a finding"),
    ("formats/zeebe/manifests.py", "ValueError"): (1, "caught in the module: Damaged"),
    ("formats/kafka/plain_records.py", "ValueError"): (1, "caught in the module: Damaged"),
    ("formats/datasets/oso_segments.py", "OSError"): (1, "caught in the module: Damaged"),
    ("kafka/client/fetch.py", "IndexError"): (4, "caught in the module: InvalidAnswer"),
    ("kafka/client/group_offsets.py", "IndexError"): (1, "caught in the module: InvalidAnswer"),
    ("embedded/ports.py", "OSError"): (1, "caught in the module: any free port"),
    ("application/kafka_log/kafka_log.py", "KafkaException"): (1, "caught in the module: `explained`"),
    ("application/kafka_log/kafka_log.py", "KafkaError"): (1, "its cause"),
    ("application/kafka_log/restore_task.py", "KafkaException"): (1, "caught in the module: `explained`"),
    ("engine/spark/sql/tables.py", "RuntimeError"): (1, "caught in the module: it ends Spark's analysis"),
    ("directories/child.py", "SystemExit"): (1, "ends the owner's process"),
    ("formats/jit.py", "AttributeError"): (1, "what `__getattr__` must raise"),
    ("formats/arrow_start.py", "ModuleNotFoundError"): (1, "what an import hook must raise; pyarrow catches it"),
    ("checkpoint/file_log/file_log.py", "ValueError"): (1, OURS),
    ("checkpoint/state/memory_state.py", "ValueError"): (1, OURS),
    ("checkpoint/state/sqlite_state.py", "ValueError"): (1, OURS),
    ("checkpoint/state/sqlite_state.py", "FileExistsError"): (1, OURS),
    ("formats/compaction/barriers.py", "ValueError"): (1, OURS),
    ("formats/datasets/arrow.py", "ValueError"): (1, OURS),
    ("formats/datasets/avro/writer.py", "ValueError"): (1, OURS),
    ("formats/datasets/native_batches.py", "ValueError"): (1, OURS),
    ("formats/kafka/compression.py", "ValueError"): (2, OURS),
    ("formats/kafka/restore/synthetic_batches.py", "ValueError"): (1, OURS),
    ("formats/run_map/runs.py", "ValueError"): (2, OURS),
    ("repository/chain/layout.py", "ValueError"): (3, OURS),
    ("repository/parts/tiers.py", "ValueError"): (1, OURS),
    ("repository/upkeep/retention.py", "ValueError"): (3, OURS),
    ("zookeeper/backup/member.py", "RuntimeError"): (1, OURS),
    ("zookeeper/backup/preview.py", "RuntimeError"): (2, OURS),
    ("kafka/client/connection.py", "LogkeepError"): (2, OURS),
    ("kafka/client/protocol.py", "LogkeepError"): (1, OURS),
    ("cli/frame/error_text.py", "LogkeepError"): (1, "says that it is a fault of ours"),
    ("cli/demo/set_story.py", "LogkeepError"): (1, "the demo's own servers and commands did not do what it shows"),
    ("cli/demo/story.py", "LogkeepError"): (2, "the demo's own servers and commands did not do what it shows"),
    ("cli/demo/zookeeper_story.py", "LogkeepError"): (
        3,
        "the demo's own servers and commands did not do what it shows",
    ),
}


@functools.cache
def nodes() -> dict[str, list[ast.AST]]:
    """All syntax nodes of each module."""
    files = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}
    return {module: list(ast.walk(ast.parse(path.read_text()))) for module, path in files.items()}


def name_of(node: ast.AST | None) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def made_in(module: str) -> Iterator[tuple[str, int]]:
    """The exceptions that a module makes, or raises as a class, and how many arguments each gets."""
    for node in nodes()[module]:
        name = name_of(node.func if isinstance(node, ast.Call) else node.exc if isinstance(node, ast.Raise) else None)
        if name in BUILTIN or (name[:1].isupper() and name.endswith(("Error", "Exception"))):
            yield name, len(node.args) if isinstance(node, ast.Call) else 0


def own_exceptions() -> set[str]:
    """Classes of exceptions that the source defines outside of `logkeep.errors`."""
    classes = [node for module in nodes().values() for node in module if isinstance(node, ast.ClassDef)]
    known = {name for name, kind in BUILTIN.items() if not issubclass(kind, Warning)} | CODED
    return {each.name for each in classes if known & {*map(name_of, each.bases)}} - CODED - {"LogkeepError"}


def caught() -> set[str]:
    handlers = [node for module in nodes().values() for node in module if isinstance(node, ast.ExceptHandler)]
    return {name_of(kind) for each in handlers if each.type is not None for kind in ast.walk(each.type)}


def explained_by_the_frame(name: str, arguments: int) -> bool:
    """An error of the operating system with its number, or of a connection: `foreign_errors` names it."""
    kind = BUILTIN.get(name, Exception)
    return issubclass(kind, OSError) and (arguments >= 2 or issubclass(kind, ConnectionError | TimeoutError))


def test_every_exception_that_would_end_with_1_was_reviewed() -> None:
    left_out = CODED | BUGS | own_exceptions()
    found = Counter(
        (module, name)
        for module in nodes()
        for name, arguments in made_in(module)
        if name not in left_out and not explained_by_the_frame(name, arguments)
    )
    assert dict(found) == {where: count for where, (count, _) in REVIEWED.items()}


def test_an_exception_of_our_own_without_a_code_is_caught_by_name() -> None:
    assert own_exceptions() - caught() <= {"SigtermReceived"}, "a KeyboardInterrupt, which the frame catches"


def test_only_the_root_of_the_tree_has_the_code_1() -> None:
    kinds = [vars(errors)[name] for name in CODED]
    assert not [kind.__name__ for kind in kinds if kind.exit_code == 1]
