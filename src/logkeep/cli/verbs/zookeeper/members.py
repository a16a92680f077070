"""The servers that --data-dir, --log-dir and --zk-host name, each given once per member. Pure except for reading myid.

The n-th of one belongs to the n-th of the others; or all begin with the member's name: `--data-dir zk1=/var/zk`. A
member without a name gets the number in its `myid`, and without that the name `standalone`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from logkeep.cli.frame.execute import Run
from logkeep.cli.terminal.text import plural
from logkeep.config.options import ZK_DATA_DIRS, ZK_HOSTS, ZK_LOG_DIRS
from logkeep.errors import UsageError
from logkeep.zookeeper.backup.server_files import VERSION_2, MemberPlace
from logkeep.zookeeper.server.four_letter import parse_address

ALONE = "standalone"
_NAMED = re.compile(r"(?:(?P<name>[A-Za-z0-9._-]{1,64})=)?(?P<value>.+)", re.DOTALL)
_MYID = re.compile(r"\s*([0-9]{1,3})\s*")
_ONCE_EACH = "give each once for every member, in the same order, or with names: --data-dir zk1=DIR --zk-host zk1=HOST"


@dataclass(frozen=True)
class GivenMember:
    """One member as given on the command line; the name may be empty."""

    name: str
    data_dir: Path
    log_dir: Path | None
    host: str


def given_members(run: Run) -> list[GivenMember]:
    """Raises UsageError for values that do not match."""
    data_dirs: tuple[str, ...] = run[ZK_DATA_DIRS]
    log_dirs: tuple[str, ...] = run[ZK_LOG_DIRS]
    hosts: tuple[str, ...] = run[ZK_HOSTS]
    found = paired(data_dirs, log_dirs, hosts)
    if not found:
        raise UsageError("no server is given", remedy="pass --data-dir with what its zoo.cfg has as dataDir")
    for each in found:
        if each.host:
            parse_address(each.host)
    return found


def paired(data_dirs: Sequence[str], log_dirs: Sequence[str], hosts: Sequence[str]) -> list[GivenMember]:
    """Match the values to members."""
    dirs = [named_value(text) for text in data_dirs]
    logs, addresses = _matched("--log-dir", log_dirs, dirs), _matched("--zk-host", hosts, dirs)
    return [
        GivenMember(name, _directory(value), _directory(log) if log else None, host)
        for (name, value), log, host in zip(dirs, logs, addresses, strict=True)
    ]


def named_value(text: str) -> tuple[str, str]:
    """`NAME=VALUE` in its parts; without a name, an empty one."""
    found = _NAMED.fullmatch(text)
    return (found["name"] or "", found["value"]) if found else ("", text)


def _matched(flag: str, texts: Sequence[str], dirs: Sequence[tuple[str, str]]) -> list[str]:
    """The value for each member; empty where there is none."""
    values = [named_value(text) for text in texts]
    if not values:
        return [""] * len(dirs)
    if all(name for name, _ in values):
        return _by_name(flag, values, [name for name, _ in dirs])
    if any(name for name, _ in values) or len(values) != len(dirs):
        what = f"{flag} is given {plural(len(values), 'time')} and --data-dir {plural(len(dirs), 'time')}"
        raise UsageError(
            what if len(values) != len(dirs) else f"only some values of {flag} have a name", remedy=_ONCE_EACH
        )
    return [value for _, value in values]


def _by_name(flag: str, values: Sequence[tuple[str, str]], names: Sequence[str]) -> list[str]:
    known = dict(values)
    unknown = next((name for name in known if name not in names), None)
    if unknown is not None or len(known) != len(values):
        what = f"{flag} names {unknown}, and no --data-dir does" if unknown else f"{flag} names a member twice"
        raise UsageError(what, remedy=_ONCE_EACH)
    return [known.get(name, "") for name in names]


def _directory(text: str) -> Path:
    """Absolute: Spark's workers have another working directory."""
    return Path(text).expanduser().absolute()


def member_places(given: Sequence[GivenMember]) -> tuple[MemberPlace, ...]:
    """Members with names. Raises UsageError when two have the same."""
    places = tuple(
        MemberPlace(each.name or name_of(each.data_dir), each.data_dir, each.log_dir or each.data_dir, each.host)
        for each in given
    )
    names = [place.name for place in places]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise UsageError(f"two members would have the name {double}", remedy="name them: --data-dir zk1=DIR")
    return places


def name_of(data_dir: Path) -> str:
    """The number in its `myid`."""
    above = data_dir.parent if data_dir.name == VERSION_2 else data_dir
    try:
        with (above / "myid").open("rb") as file:
            text = file.read(16).decode("ascii", "replace")
    except OSError:
        return ALONE
    found = _MYID.fullmatch(text)
    return found[1] if found else ALONE
