"""`python -S -E forker_client.py SOCKET MODULE ARGUMENTS`: a shell's command that the forker runs (see `forker`).

It hands over its streams, environment, directory and ignored signals, passes signals on, and ends as the command ends.
It loads nothing but built-in modules, because guides call it hundreds of times.
"""

import _signal as signal  # type: ignore[import-not-found]
import _socket as socket
import marshal
import os
import sys

_SIZE = 8
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_READ_AT_START = ("PYTHON", "LC_", "NUMBA_", "OPENBLAS_", "OMP_", "LD_")
_ROOT = os.path.dirname(__file__).removesuffix("/tests/support/cli")  # noqa: PTH120
_PATHS = f"{_ROOT}/src:{_ROOT}"
_waiting: list[int] = []
_command: list[int] = []


def _pass_on(number: int, _frame: object) -> None:
    if _command:
        os.kill(_command[0], number)
    else:
        _waiting.append(number)


def _number(connection: "socket.socket") -> int:
    received = b""
    while len(received) < _SIZE:
        more = connection.recv(_SIZE - len(received))
        if not more:
            sys.exit("the forker is gone")
        received += more
    return int.from_bytes(received)


def main(address: str, module: str, *arguments: str) -> None:
    ignored = tuple(int(kind) for kind in _PASSED_ON if signal.getsignal(kind) == signal.SIG_IGN)
    for kind in _PASSED_ON:
        if kind not in ignored:
            signal.signal(kind, _pass_on)
    if any(name.startswith(_READ_AT_START) for name in os.environ):
        os.environ["PYTHONPATH"] = _PATHS
        os.execv(sys.executable, [sys.executable, "-m", module, *arguments])  # noqa: S606
    umask = os.umask(0)
    os.umask(umask)
    environment = {**os.environ, "PYTHONPATH": _PATHS}
    text = marshal.dumps((module, arguments, environment, os.getcwd(), umask, ignored))  # noqa: PTH109
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    connection.sendmsg([len(text).to_bytes(_SIZE)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
    connection.sendall(text)
    _command.append(_number(connection))
    for number in _waiting:
        os.kill(_command[0], number)
    code = os.waitstatus_to_exitcode(_number(connection))
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
