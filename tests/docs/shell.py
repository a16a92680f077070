"""Typing a page's commands into one shell, in a directory and a home of its own."""

import os
import signal
import stat
import subprocess
import sys
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from logkeep.embedded.ports import free_ports
from logkeep.model.cache import cache_dir, jars_dir
from tests.docs.pages import ROOT, Command, Scene
from tests.docs.tools import APACHE_TOOLS
from tests.support.cli.forker import command_script
from tests.support.kafka.kernel_cache import share_kernels
from tests.support.processes import kept_variables

_LIMIT_S = 600
_SCENE = """\
#!/bin/sh
case "$1" in
  *-starts|kafka-moves) exec started-scene "$1" ;;
  *) exec forked-scene "$1" ;;
esac
"""
"""A server belongs to the session of the shell, which ends it: scenes that start one are processes of the shell."""


@dataclass(frozen=True)
class Typed:
    """What a command printed, both streams as on a terminal, and how it ended."""

    step: Command | Scene
    printed: str
    code: int


def type_in(steps: Sequence[Command | Scene], scratch: Path) -> list[Typed]:
    """Run all steps in one bash, so that variables and directories last as they do for a reader."""
    border = f"border-{uuid.uuid4().hex}"
    script = "".join(f"{_text(step)}\nprintf '\\n{border} %s\\n' $?\n" for step in steps)
    printed = _bash(script, scratch)
    pieces = printed.split(border)
    # Each piece but the first begins with the exit code of the step before it.
    codes = [int(piece.split("\n", 1)[0]) for piece in pieces[1:]]
    texts = [pieces[0], *(piece.partition("\n")[2] for piece in pieces[1:])]
    return [Typed(s, text.removesuffix("\n"), code) for s, text, code in zip(steps, texts, codes, strict=False)]


def _text(step: Command | Scene) -> str:
    return step.text if isinstance(step, Command) else f"logkeep-scene {step.name}"


def _bash(script: str, scratch: Path) -> str:
    work, home = scratch / "work", scratch / "home"
    work.mkdir()
    home.mkdir()
    share_kernels(home)
    _share_jars(home)
    process = subprocess.Popen(
        ["bash"], cwd=work, env=_environment(scratch, home), text=True, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        # Commands must not eat the script: they get no input.
        return process.communicate(f"{{\n{script}}} </dev/null\n", timeout=_LIMIT_S)[0]
    finally:
        _end(process)


def _share_jars(home: Path) -> None:
    """`logkeep demo` fetches its servers' jars from the network; the tests have them already."""
    shared = jars_dir(cache_dir(os.environ, Path.home()))
    jars_dir(cache_dir({}, home)).symlink_to(shared)


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):  # all gone, as it should be
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _environment(scratch: Path, home: Path) -> dict[str, str]:
    tools = scratch / "bin"
    tools.mkdir()
    _put(tools / "logkeep", command_script("logkeep.cli"))
    _put(tools / "zkbackup", command_script("logkeep.cli.zkbackup"))
    _tool(tools / "zkServer.sh", "-m tests.docs.zookeeper")
    _put(tools / "forked-scene", command_script("tests.docs.scenes"))
    _tool(tools / "started-scene", "-m tests.docs.scenes")
    _put(tools / "logkeep-scene", _SCENE)
    for name in APACHE_TOOLS:
        _tool(tools / name, f"-m tests.docs.tools {name}")
    _tool(tools / "python", "")
    plain, tls, zookeeper, *ensemble = free_ports(12)
    return {
        "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', '/usr/bin:/bin')}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        # Where the reader has a cluster; `tests.docs.broker` starts one there when a page asks for it.
        "BROKERS": f"127.0.0.1:{plain}",
        "TLS_BROKERS": f"localhost:{tls}",
        "ZK": f"127.0.0.1:{zookeeper}",
        **{f"ZK{number}": f"127.0.0.1:{port}" for number, port in enumerate(ensemble[:3], 1)},
        "ZK_PEERS": ",".join(map(str, ensemble[3:])),
        "SCENE_CACHE": str(cache_dir(os.environ, Path.home())),
    }


def _tool(path: Path, arguments: str) -> None:
    """A command that runs the code under test, whatever the reader's Python is."""
    variables = kept_variables() | {"PYTHONPATH": f"{ROOT}/src:{ROOT}"}
    given = " ".join(f'{name}="{value}"' for name, value in variables.items())
    _put(path, f'#!/bin/sh\n{given} exec "{sys.executable}" {arguments} "$@"\n')


def _put(path: Path, script: str) -> None:
    path.write_text(script)
    path.chmod(stat.S_IRWXU)
