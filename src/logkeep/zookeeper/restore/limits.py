"""What a tree holds that not every server supports, and what the target's servers would do with it. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from logkeep.errors import LogkeepError, TargetUnsafe, UsageError
from logkeep.formats.zookeeper import shown
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import plural
from logkeep.zookeeper.model.paths import CONFIG
from logkeep.zookeeper.model.tree import CONTAINER_OWNER, TTL_MARK, Tree
from logkeep.zookeeper.restore.values import ZooKeeperRestoreOptions

_CONTAINERS_SINCE, _TTL_SINCE, _CONFIG_SINCE = (3, 5, 1), (3, 5, 3), (3, 5)
_ROOM_IN_BUFFER = 1024
"""A server reads a little more than `jute.maxbuffer` from its own files."""


@dataclass(frozen=True)
class TreeContent:
    nodes: int
    size_bytes: int
    """Of a snapshot of the tree, without sessions and ACLs."""
    containers: int
    ttls: int
    largest: bytes
    """The path of the node with the most data."""
    largest_bytes: int
    config: bool
    dying: int = 0
    """Containers and nodes with a time to live that a server removes at its first check."""


def content_of(tree: Tree, now_ms: int) -> TreeContent:
    """One pass over all nodes, and a second one if there are containers or nodes with a time to live."""
    size = containers = ttls = most = 0
    largest = b""
    for path, node in tree.nodes.items():
        data_bytes = len(node.data or b"")
        size += 76 + len(path) + data_bytes
        if node.owner == CONTAINER_OWNER:
            containers += 1
        elif node.owner & TTL_MARK == TTL_MARK:
            ttls += 1
        if data_bytes > most:
            largest, most = path, data_bytes
    dying = _dying(tree, now_ms) if containers or ttls else 0
    config = tree.nodes.get(CONFIG)
    has_config = config is not None and bool(config.data)
    return TreeContent(len(tree.nodes), size, containers, ttls, largest, most, has_config, dying)


def _dying(tree: Tree, now_ms: int) -> int:
    """Counts containers that had children and have none, and expired nodes without children."""
    parents = {path[: path.rindex(b"/")] for path in tree.nodes if path}
    childless = (node for path, node in tree.nodes.items() if path not in parents)
    return sum(
        node.cversion > 0 if node.owner == CONTAINER_OWNER else now_ms - node.mtime > node.owner & ~TTL_MARK
        for node in childless
        if node.owner == CONTAINER_OWNER or node.owner & TTL_MARK == TTL_MARK
    )


def parse_version(version: str) -> tuple[int, ...] | None:
    """None for an empty string: the version is not known. Raises UsageError for anything else."""
    if not version:
        return None
    parts = version.partition("-")[0].split(".")
    if len(parts) < 2 or not all(part.isdecimal() for part in parts):
        raise UsageError("this is not a version of ZooKeeper", subject=version, remedy="write it as 3.9.5")
    return tuple(int(part) for part in parts)


def tree_obstacles(content: TreeContent, wish: ZooKeeperRestoreOptions) -> Iterator[LogkeepError]:
    """Nodes that the servers would silently remove, or could not read."""
    version = parse_version(wish.version)
    if version is not None and content.containers and version < _CONTAINERS_SINCE:
        containers = plural(content.containers, "container node")
        yield _cannot(f"{containers} would be removed by ZooKeeper {wish.version}", "3.5.1")
    if version is not None and content.ttls and version < _TTL_SINCE:
        yield _cannot(f"{_with_ttl(content.ttls)} would be removed by ZooKeeper {wish.version}", "3.5.3")
    elif content.ttls and wish.extended_types is False:
        yield TargetUnsafe(
            f"{_with_ttl(content.ttls)} would be removed: the servers do not support extended types",
            remedy="set extendedTypesEnabled=true in zoo.cfg of every member",
        )
    if content.largest_bytes > wish.jute_maxbuffer + _ROOM_IN_BUFFER:
        yield TargetUnsafe(
            f"it holds {content.largest_bytes} bytes, and servers with jute.maxbuffer={wish.jute_maxbuffer} "
            "do not start on it",
            subject=shown(content.largest),
            remedy=f"start servers and clients with -Djute.maxbuffer={content.largest_bytes + _ROOM_IN_BUFFER} "
            "or more, and pass that size with --jute-maxbuffer of logkeep",
        )


def _with_ttl(number: int) -> str:
    return f"{plural(number, 'node')} with a time to live"


def tree_findings(content: TreeContent, wish: ZooKeeperRestoreOptions) -> Iterator[Finding]:
    version = parse_version(wish.version)
    if content.ttls and wish.extended_types is None:
        what = f"{_with_ttl(content.ttls)} will be removed by servers without extendedTypesEnabled=true"
        yield warning("ttl-nodes", what, "set extendedTypesEnabled=true in zoo.cfg of every member before the start")
    if content.dying:
        dying = plural(content.dying, "container or node", "containers or nodes")
        what = f"{dying} with a time to live expired before: servers remove such nodes after start"
        yield Finding(code="short-lived-nodes", severity=Severity.NOTE, where="target", what=what)
    if content.containers and version is None:
        what = f"{plural(content.containers, 'container node')} will be removed by servers before 3.5.1"
        yield warning("container-nodes", what, "start a server of 3.5.1 or later")
    if content.config:
        what = "members overwrite it with their own configuration when they start"
        if version is not None and version < _CONFIG_SINCE:
            what = f"it is an ordinary node for ZooKeeper {wish.version}"
        yield Finding(code="config-node", severity=Severity.NOTE, where=shown(CONFIG), what=what)


def warning(code: str, what: str, remedy: str, where: str = "target") -> Finding:
    return Finding(code=code, severity=Severity.WARNING, where=where, what=what, remedy=remedy)


def _cannot(what: str, since: str) -> TargetUnsafe:
    return TargetUnsafe(what, remedy=f"start a server of {since} or later")
