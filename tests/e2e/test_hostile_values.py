"""No verb lets a value control the terminal or begin a line, whoever wrote it, and none ends unexpectedly.

Every verb of both programs is called with repositories, brokers, servers and directories of an attacker. A verb without
a line in the table fails the first test: a new verb gets its line there, and nothing else.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from logkeep.cli.frame.catalogue import VERBS
from logkeep.cli.zkbackup.main import COMMANDS
from logkeep.config.options import METRICS_FILE
from tests.support.hostile.broker import HostileBroker, Lie
from tests.support.hostile.calls import on_terminal, piped
from tests.support.hostile.corpus import LONG, problems
from tests.support.hostile.documents import kinds
from tests.support.hostile.repositories import TOPIC
from tests.support.hostile.world import HostileServer, HostileWorld, hostile_world

pytestmark = pytest.mark.xdist_group("hostile-values")

KAFKA, LOCKED, ZK, FRESH = ("-r file://{kafka}", "-r file://{locked}", "-r file://{zk}", "-r file://{fresh}")
LONG_TEXTS = "-r file://{long}"
BROKERS = tuple(f"--bootstrap-servers {{{name}}}" for name in ("broker", "topics", "refusing", "garbled", "long-name"))
SHOWS = frozenset(
    {
        *("list", "info", "unlock", "hold", "receipts show", "kafka backup", "kafka restore"),
        *(
            "kafka salvage",
            "kafka schemas list",
            "kafka schemas show",
            "zookeeper history",
            "zookeeper diff",
            "zookeeper import",
            "zeebe list",
            "zeebe verify",
        ),
        *("zkbackup info", "zkbackup verify"),
    }
)
"""Verbs whose output must contain a hostile text, escaped: the calls below do reach it."""

PROBES = frozenset({"init", "check", "store probe"})
"""Verbs that probe a store, which takes seconds: piped is enough, as both ways print the same."""

ELSEWHERE = {"DescribeConfigs": Lie.OTHER_NAME}
CALLS: dict[str, tuple[str, ...]] = {
    "init": (f"init {FRESH} --dry-run", "init -r file://{text}"),
    "check": (f"check {LOCKED}", f"check {LONG_TEXTS}"),
    "list": (f"list {KAFKA}", f"list {LONG_TEXTS}", f"list {LOCKED} --json", f"list {ZK}"),
    "info": (f"info latest {KAFKA} --all",
             f"info latest {LONG_TEXTS} --all", f"info {{backup}} {LOCKED}", f"info latest {ZK} --all",
             "info latest -r file://{imported} --all"),
    "verify": (f"verify {KAFKA}",
               f"verify {LONG_TEXTS}", f"verify {KAFKA} --level records", f"verify {ZK} --level replay"),
    "drill": tuple(f"drill latest {KAFKA} {brokers}" for brokers in BROKERS),
    "status": (f"status {KAFKA}", f"status {LONG_TEXTS}", f"status {LOCKED}", f"status {ZK}"),
    "delete": (f"delete {{backup}} {KAFKA}", f"delete {{backup}} {KAFKA} -y", f"delete {{backup}} {LOCKED} -y"),
    "prune": (f"prune --keep-last 1 {KAFKA}", f"prune --keep-last 1 {LONG_TEXTS}",
              f"prune --keep-last 1 {KAFKA} -y", f"prune --keep-last 1 {LOCKED} -y"),
    "hold": (f"hold {{backup}} --reason {{text}} {KAFKA}",),
    "release": (f"release {{backup}} {KAFKA}", f"release {{backup}} {LOCKED}"),
    "unlock": (f"unlock --dry-run {LONG_TEXTS}", f"unlock --dry-run {LOCKED}", f"unlock {LOCKED}"),
    "repair": (f"repair --dry-run {KAFKA}", f"repair {LOCKED}"),
    "demo": ("demo {text}",),
    "kafka backup": (
        *(f"kafka backup {KAFKA} --source other {brokers}" for brokers in BROKERS),
        f"kafka backup {KAFKA} --source prod {BROKERS[1]}",
        f"kafka backup {KAFKA} --source other {BROKERS[1]} --dry-run",
        f"kafka backup {KAFKA} --source other --bootstrap-servers {{elsewhere}}",
    ),
    "kafka restore": (
        *(f"kafka restore latest {KAFKA} {brokers}" for brokers in BROKERS),
        f"kafka restore latest {KAFKA} {BROKERS[1]} --dry-run",
        f"kafka restore latest {LONG_TEXTS} {BROKERS[1]} --dry-run",
        f"kafka restore latest {KAFKA} {BROKERS[1]} --topics {TOPIC} --rename {TOPIC}=new --dry-run",
        f"kafka restore latest {KAFKA} {BROKERS[1]} --yes",
        f"kafka restore --resume {{interrupted}} {KAFKA} {BROKERS[1]}",
        f"kafka restore latest {KAFKA} --to-log-dirs {{disk}} --dry-run",
    ),
    "kafka restore abort": (f"kafka restore abort {{interrupted}} {KAFKA} {BROKERS[1]}",),
    "kafka groups": (f"kafka groups latest {KAFKA}",
                     f"kafka groups latest {LONG_TEXTS}"),
    "sql": (f"sql {{text}} {KAFKA} --engine inline", f"sql {{text}} {ZK} --as {{text}}"),
    "kafka groups restore": tuple(f"kafka groups restore --backup latest {KAFKA} {brokers}" for brokers in BROKERS),
    "kafka groups rollback": (f"kafka groups rollback {{done}} {KAFKA} {BROKERS[1]}",),
    "app backup": (f"app backup shop --data {{text}} {KAFKA}", f"app backup {{text}} --data {{text}} {KAFKA}",
                   f"app backup shop --data {{text}} --on-failover {{text}} {KAFKA}",
                   f"app backup shop {BROKERS[1]} --client-config {{text}} {KAFKA}"),
    "app checkpoint": (f"app checkpoint shop --data {{text}} {KAFKA}",
                       f"app checkpoint shop {BROKERS[1]} --client-config {{text}} {KAFKA}"),
    "app restore": (f"app restore {{text}} --data {{text}} {KAFKA}", f"app restore 7 --data {{text}} {KAFKA} -y",
                    f"app restore 7 {BROKERS[1]} --client-config {{text}} {KAFKA} -y"),
    "app status": (f"app status {{text}} {KAFKA}", f"app status 7 {KAFKA}"),
    "backup-set take": (f"backup-set take --members {{text}},prod {KAFKA}",
                        f"backup-set take --members prod,x {LOCKED}"),
    "backup-set status": (f"backup-set status {{text}} {KAFKA}", f"backup-set status {KAFKA}"),
    "zeebe backup": ("zeebe backup --management http://127.0.0.1:1 --store {zeebe}",
                     "zeebe backup --management {text} --store {zeebe}"),
    "zeebe import": (f"zeebe import 20 --store {{zeebe}} {ZK}", f"zeebe import {{text}} --store {{zeebe}} {FRESH}"),
    "zeebe export": ("zeebe export latest -r file://{zeebe-archive} --to {fresh}/zeebe",
                     f"zeebe export latest {KAFKA} --to {{text}}", f"zeebe export {{text}} {ZK}"),
    "zeebe list": ("zeebe list --store {zeebe} --all", "zeebe list --store {text}"),
    "zeebe verify": ("zeebe verify 20 --store {zeebe} --all", "zeebe verify {text} --store {zeebe}"),
    "kafka schemas list": (f"kafka schemas list latest {KAFKA} --all",
                           f"kafka schemas list latest {LONG_TEXTS} --all"),
    "kafka schemas show": (f"kafka schemas show latest 1 {KAFKA}",),
    "kafka schemas check": (f"kafka schemas check latest {KAFKA}",),
    "kafka schemas restore": (
        f"kafka schemas restore latest {KAFKA} --registry http://{{words}}",
        f"kafka schemas restore latest {KAFKA} --registry http://{{closed}}/{{text}}",
    ),
    "kafka show": (f"kafka show {TOPIC} latest {KAFKA}", f"kafka show {TOPIC}:0:0 latest {KAFKA} --decode text"),
    "kafka generations": (f"kafka generations {KAFKA}",),
    "kafka generations new": (f"kafka generations new --topics .* {KAFKA}",),
    "kafka generations cancel": (f"kafka generations cancel --topics .* {KAFKA}",),
    "kafka salvage": (f"kafka salvage {KAFKA} --source other --log-dirs {{disk}} --dry-run",
                      f"kafka salvage {KAFKA} --source other --log-dirs {{disk}}"),
    "kafka dataset verify": ("kafka dataset verify {text}", "kafka dataset verify {dataset} --all"),
    "kafka dataset info": ("kafka dataset info {text}", "kafka dataset info {dataset} --all"),
    "kafka dataset reindex": ("kafka dataset reindex {text} -y", "kafka dataset reindex {dataset} -y"),
    "kafka dataset prune": ("kafka dataset prune {dataset} --older-than 1d -y",
                            "kafka dataset prune {dataset} --older-than 1d --topics {text} -y"),
    "kafka export": (
        f"kafka export latest {KAFKA} --format kafka-backup-v1 --to {{fresh}}/{{text}} --dry-run",
        f"kafka export latest {KAFKA} --format kafka-backup-v1 --to {{fresh}}/{{text}}",
    ),
    "kafka import": (f"kafka import {{text}} {KAFKA}", f"kafka import {{dataset}} {KAFKA} --source other --dry-run",
                     f"kafka import {{dataset}} {KAFKA} --source other"),
    "kafka fold": (f"kafka fold {KAFKA}", f"kafka fold {LOCKED}"),
    "kafka optimize": (f"kafka optimize {KAFKA}", f"kafka optimize {LOCKED}"),
    "zookeeper backup": (
        f"zookeeper backup {ZK} --data-dir {{server}}/data --zk-host {{closed}}",
        f"zookeeper backup {ZK} --admin-server http://{{words}}",
    ),
    "zookeeper restore": (
        f"zookeeper restore latest {ZK} --data-dir {{target}} --dry-run",
        f"zookeeper restore latest {ZK} --data-dir {{server}}/data --zk-host {{words}}",
        "zookeeper restore --rollback --data-dir {journal} -y",
        "zookeeper restore --continue --data-dir {journal} -y",
    ),
    "zookeeper restore survey": (
        "zookeeper restore survey --data-dir {server}/data --zk-host {words} --to {target}/s.json",
    ),
    "zookeeper restore plan": (f"zookeeper restore plan latest {{survey}} {ZK}",),
    "zookeeper restore-subtree": (
        f"zookeeper restore-subtree latest {{text}} {ZK} --zk-host {{closed}} --dry-run",
        "zookeeper restore-subtree --undo {subtree}",
    ),
    "zookeeper optimize": (f"zookeeper optimize {ZK}",),
    "zookeeper export": (f"zookeeper export latest {ZK} --to {{target}}",),
    "zookeeper import": (f"zookeeper import {{bundle}} {FRESH}", f"zookeeper import {{bundle}} {ZK} --source {{text}}"),
    "zookeeper repair": (f"zookeeper repair {ZK} --dry-run", f"zookeeper repair {ZK} --data-dir {{server}}/data"),
    "zookeeper history": (f"zookeeper history / --recursive {ZK}", f"zookeeper history /{{text}} {ZK}",
                          "zookeeper history / {bundle} --recursive"),
    "zookeeper diff": (f"zookeeper diff latest latest@0x2 {ZK}", f"zookeeper diff {{bundle}} latest@0x3 {ZK}"),
    "zookeeper log": (f"zookeeper log latest {ZK}",),
    "app serve": (
        f"app serve shop --data {{text}} --listen {{text}} {KAFKA}",
        f"app serve {{text}} --data {{text}} --listen 127.0.0.1:0 {KAFKA}",
        f"app serve shop --data {{text}} --allow-restore --listen {{text}} {KAFKA}",
        f"app serve shop {BROKERS[1]} --client-config {{text}} {KAFKA}",
    ),
    "app simulate": (
        "app simulate --seeds {text}", "app simulate --seeds 0..3", "app simulate --application {text} --seeds 0..3",
    ),
    "receipts list": (f"receipts list {KAFKA}", f"receipts list {LONG_TEXTS}"),
    "receipts show": (f"receipts show {{done}} {KAFKA} --all", f"receipts show {{interrupted}} {KAFKA}",
                      f"receipts show {{done}} {LONG_TEXTS} --all",
                      f"receipts show {{done}} {KAFKA} --map -"),
    "config show": ("config show -r file://{text}",),
    "config validate": ("config validate -r file://{text}",),
    "store probe": (f"store probe {FRESH}", "store probe -r file:///{text}"),
    "completion": ("completion bash",),
    "version": ("version",),
    "zkbackup backup": ("backup --zk-data-dir {server}/data --zk-host {closed} --output-dir {target}",),
    "zkbackup restore": (
        "restore --backup-dir {bundle} --zk-data-dir {target} --zk-log-dir {target} --zk-host {words} --dry-run",
        "restore --backup-dir {bundle} --zk-data-dir {server}/data --zk-log-dir {server}/data --zk-host {closed}",
        "restore --rollback --zk-data-dir {journal} --zk-log-dir {journal} --zk-host {closed} --force",
    ),
    "zkbackup verify": ("verify --backup-dir {bundle} --level replay", "verify --backup-dir {bundle} --format json"),
    "zkbackup list": ("list --backup-base-dir {bundles}", "list --backup-base-dir {bundles} --output-format json",
                      "list --backup-base-dir {bundles} --output-format simple"),
    "zkbackup info": ("info one --backup-base-dir {bundles}", "info one --backup-base-dir {bundles} --format json"),
    "zkbackup prune": ("prune --backup-base-dir {bundles} --keep-days 1 --keep-min-count 1 --keep-count 1",),
    "zkbackup completion": ("completion bash",),
}  # fmt: skip
"""Options that the text contains are split at spaces before the names are filled in."""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> HostileWorld:
    return hostile_world(tmp_path_factory.mktemp("hostile") / "world")


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    with ExitStack() as stack:
        yield {
            "broker": stack.enter_context(HostileBroker()).address,
            "topics": stack.enter_context(HostileBroker(topic=TOPIC)).address,
            "elsewhere": stack.enter_context(HostileBroker(topic=TOPIC, lies=ELSEWHERE)).address,
            "garbled": stack.enter_context(HostileBroker(garbled=True)).address,
            "long-name": stack.enter_context(HostileBroker(topic=LONG)).address,
            "refusing": stack.enter_context(HostileBroker(refusing=True)).address,
            "words": stack.enter_context(HostileServer()).address,
            "closed": "127.0.0.1:1",
        }


def test_every_verb_and_every_document_is_in_the_corpus(original: HostileWorld) -> None:
    assert set(CALLS) == {e.words for e in VERBS} | {f"zkbackup {e.words}" for e in COMMANDS}
    assert original.stored_kinds == set(kinds())


@pytest.mark.parametrize("verb", CALLS)
def test_a_verb(verb: str, original: HostileWorld, servers: dict[str, str], tmp_path: Path) -> None:
    world, program = original.copied(tmp_path / "world"), _program(verb)
    texts = []
    for call in CALLS[verb]:
        words = [word.format(**world.places(), **servers) for word in call.split()]
        texts.append(_piped(verb, words, world.root))
        if verb not in PROBES:
            shown = on_terminal(program, words, world.root)
            texts.append(_checked(f"{call}, on a terminal", shown.text, terminal=True))
    unknown = ["--\x1b[2J\u202eunknown", "\x1b]0;owned\x07"]
    _checked(verb, piped(program, [*verb.removeprefix("zkbackup ").split(), *unknown], tmp_path).text)
    if verb in SHOWS:
        assert any("\\x1b[2K" in text for text in texts), "no hostile text has reached the output: " + "\n".join(texts)


def _piped(verb: str, words: list[str], root: Path) -> str:
    log, metrics = root / "run.log", root / "metrics" / "run.prom"
    metrics.parent.mkdir(exist_ok=True)
    more = ["--log-file", str(log), "--log-level", "debug"] if _program(verb) == "logkeep" else []
    if _has_metrics(verb):
        more += ["--metrics-file", str(metrics)]
    shown = piped(_program(verb), [*words, *more], root)
    written = [file.read_text(errors="surrogateescape") for file in (log, metrics) if file.exists()]
    for text in (shown.text, *written):
        _checked(" ".join(words), text)
    return shown.text


def _has_metrics(verb: str) -> bool:
    entry = next((e for e in VERBS if e.words == verb), None)
    return entry is not None and METRICS_FILE in entry.load().options


def _checked(call: str, text: str, *, terminal: bool = False) -> str:
    assert "unexpected " not in text.replace("unexpected extra argument", ""), f"{call}\n{text[-1000:]}"
    assert problems(text, terminal=terminal) == [], f"{call}\n{text[:3000]!r}"
    return text


def _program(verb: str) -> str:
    return "zkbackup" if verb.startswith("zkbackup ") else "logkeep"
