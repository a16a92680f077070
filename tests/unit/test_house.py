"""The shape of the source tree: packages stay small, names have one meaning, imports form no cycle."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "logkeep"
MODULES = sorted(SOURCE.rglob("*.py"))
MOST_MODULES = 20
SHARED_NAMES: dict[str, str] = {}
"""Public class names that two modules may share, with the reason."""


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def test_no_package_has_too_many_modules() -> None:
    """`__init__` and `__main__` are no modules that a reader looks for."""
    count: dict[str, int] = defaultdict(int)
    for path in MODULES:
        count[_name(path.parent / "__init__.py")] += not path.name.startswith("__")
    assert {package: found for package, found in count.items() if found > MOST_MODULES} == {}


def test_a_public_class_name_has_one_meaning() -> None:
    where: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(_name(path))
    shared = {name: modules for name, modules in where.items() if len(modules) > 1}
    assert {name: modules for name, modules in shared.items() if name not in SHARED_NAMES} == {}
    assert set(SHARED_NAMES) <= set(shared), "an exception that is no longer needed"


def test_every_module_says_what_it_is() -> None:
    """In its first line, with whole sentences."""
    first = {_name(path): (ast.get_docstring(_tree(path)) or "").partition("\n")[0] for path in MODULES}
    assert {module: line for module, line in first.items() if not line.endswith((".", ":", "?"))} == {}


def test_a_tour_of_a_package_names_all_that_is_in_it() -> None:
    """The docstring of a package may have a line for each of its modules; then it has one for all of them."""
    line = re.compile(r"^ *(?:- `)?([a-z_0-9]+)(?:`: | {2,})", re.M)
    for path in SOURCE.rglob("__init__.py"):
        named = set(line.findall(ast.get_docstring(_tree(path)) or ""))
        modules = [each for each in path.parent.iterdir() if each.is_dir() or each.suffix == ".py"]
        inside = {each.stem for each in modules if not each.name.startswith("__")}
        if len(named & inside) > 2:
            assert named == inside, _name(path)


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    """Imports inside of functions count: they make a cycle too. Imports for type checkers do not."""
    return grimp.build_graph("logkeep", exclude_type_checking_imports=True, cache_dir=None)


def test_no_modules_import_each_other(imports: grimp.ImportGraph) -> None:
    assert _cycles({module: imports.find_modules_directly_imported_by(module) for module in imports.modules}) == []


def test_no_packages_import_each_other(imports: grimp.ImportGraph) -> None:
    """Nor a package and a module beside it: what one imports from the other, at any depth, goes in one direction."""
    below: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for module in imports.modules:
        for other in imports.find_modules_directly_imported_by(module):
            mine, theirs = module.split("."), other.split(".")
            depth = next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), None)
            if depth is not None and any(imports.find_children(".".join(each[: depth + 1])) for each in (mine, theirs)):
                below[".".join(mine[:depth])][mine[depth]].add(theirs[depth])
    found = {parent: cycles for parent, children in below.items() if (cycles := _cycles(children))}
    assert found == {}


def _cycles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Groups of nodes that reach each other (Tarjan, without recursion)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for root in sorted(edges):
        walk = [] if root in order else [(root, iter(sorted(edges.get(root, ()))))]
        if walk:
            order[root] = lowest[root] = len(order)
            stack.append(root)
        while walk:
            node, following = walk[-1]
            after = next(following, None)
            if after is None:
                walk.pop()
                if walk:
                    lowest[walk[-1][0]] = min(lowest[walk[-1][0]], lowest[node])
                if lowest[node] == order[node]:
                    at = stack.index(node)
                    if len(stack) - at > 1:
                        found.append(sorted(stack[at:]))
                    del stack[at:]
            elif after not in order:
                order[after] = lowest[after] = len(order)
                stack.append(after)
                walk.append((after, iter(sorted(edges.get(after, ())))))
            elif after in stack:
                lowest[node] = min(lowest[node], order[after])
    return found


def test_a_cycle_is_found() -> None:
    assert _cycles({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a", "d"]}) == [["b", "c"]]
