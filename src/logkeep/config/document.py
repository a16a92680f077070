"""Parses the YAML text of one file into `dotted.key → value, line`.

Strict, because a configuration that is only half understood can silently stop backups. Duplicate keys, anchors, tags,
several documents and deeply nested files are refused with file and line. This module does not know the keys, except
`leaves`: keys whose value may itself be a mapping.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from logkeep.config.file_text import SEE_KEYS
from logkeep.errors import ConfigError


@dataclass(frozen=True)
class ConfigEntry:
    """One value with its key and line."""

    key: str
    value: object
    line: int


def parse_document(text: str, path: Path, leaves: Container[str]) -> list[ConfigEntry]:
    """All values in order; `path` is the file that the text came from. Raises ConfigError."""
    try:
        return _entries(text, path, leaves)
    except RecursionError:
        raise ConfigError("the file is nested too deeply", subject=str(path), remedy=SEE_KEYS) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        subject = f"{path}:{mark.line + 1}" if mark else str(path)
        raise ConfigError(
            f"the file is not valid YAML: {error.problem or error.context}", subject=subject, remedy=SEE_KEYS
        ) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(
            f"the file is not valid YAML: {str(error).splitlines()[0]}", subject=str(path), remedy=SEE_KEYS
        ) from None


def _entries(text: str, path: Path, leaves: Container[str]) -> list[ConfigEntry]:
    # Pure Python: in the C parser a deeply nested file overflows the stack, here it is an error.
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        return list(_Walk(loader, path, leaves).entries(root)) if root is not None else []
    finally:
        loader.dispose()


@dataclass
class _Walk:
    loader: yaml.SafeLoader
    path: Path
    leaves: Container[str]

    def entries(self, root: yaml.Node) -> Iterator[ConfigEntry]:
        self._refuse_shared_nodes(root)
        if not isinstance(root, yaml.MappingNode):
            raise self._error(root, "must be a mapping of sections")
        yield from self._mapping(root, "")

    def _mapping(self, node: yaml.MappingNode, prefix: str) -> Iterator[ConfigEntry]:
        for name, value in self._pairs(node):
            key, line = f"{prefix}{name}", value.start_mark.line + 1
            if isinstance(value, yaml.MappingNode) and key not in self.leaves:
                yield from self._mapping(value, f"{key}.")
            else:
                self._pairs_everywhere(value)
                yield ConfigEntry(key, self.loader.construct_object(value, deep=True), line)

    def _pairs(self, node: yaml.MappingNode) -> list[tuple[str, yaml.Node]]:
        seen: dict[str, yaml.Node] = {}
        for name, value in node.value:
            if not isinstance(name, yaml.ScalarNode) or name.tag == "tag:yaml.org,2002:merge":
                raise self._error(name, "has a key that is not plain text")
            if name.value in seen:
                raise self._error(name, f"has the key {name.value!r} twice")
            seen[name.value] = value
        return list(seen.items())

    def _pairs_everywhere(self, node: yaml.Node) -> None:
        if isinstance(node, yaml.MappingNode):
            for _, inner in self._pairs(node):
                self._pairs_everywhere(inner)

    def _refuse_shared_nodes(self, root: yaml.Node) -> None:
        # A few lines of aliases to aliases can describe billions of values.
        seen: set[int] = set()
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if id(node) in seen:
                raise self._error(node, "uses an anchor; write the value out")
            seen.add(id(node))
            if isinstance(node, yaml.MappingNode):
                waiting.extend(part for pair in node.value for part in pair)
            elif isinstance(node, yaml.SequenceNode):
                waiting.extend(node.value)

    def _error(self, node: yaml.Node, what: str) -> ConfigError:
        return ConfigError(what, subject=f"{self.path}:{node.start_mark.line + 1}", remedy=SEE_KEYS)
