"""An attack on Spark's RPC ports by another user: one frame with a serialised Java object of a class of its choice."""

import re
import struct
import subprocess
import sys
from pathlib import Path

ANOTHER_UID = 65534
CLASS = "evil.NotThere"
_LISTEN = "0A"
_PATIENCE_S = 60
_CLIENT = """
import os, socket, sys
uid, port, frame = int(sys.argv[1]), int(sys.argv[2]), bytes.fromhex(sys.argv[3])
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
with socket.socket() as connection:
    connection.settimeout(10)
    connection.connect(("127.0.0.1", port))
    connection.sendall(frame)
    reply = b""
    while len(reply) < 8 or len(reply) < int.from_bytes(reply[:8], "big"):
        try:
            more = connection.recv(1 << 16)
        except ConnectionResetError:
            more = b""
        except TimeoutError:
            reply, more = b"no answer", b""
        if not more:
            break
        reply += more
sys.stdout.buffer.write(reply)
"""


def frame(host: str, port: int) -> bytes:
    """An RpcRequest to the endpoint that every Spark process has; its content is an object of the class."""
    receiver = b"\0\1" + _utf(host) + struct.pack(">i", port) + _utf("endpoint-verifier")
    described = b"\xac\xed\0\x05\x73\x72" + _utf(CLASS) + struct.pack(">qbh", 1, 2, 0) + b"\x78\x70"
    body = receiver + described
    return struct.pack(">qbqi", 21 + len(body), 3, 42, len(body)) + body


def reply_to_another_user(port: int) -> bytes:
    """What the port answers to the frame of another user; of another process where tests do not run as root."""
    command = [sys.executable, "-I", "-c", _CLIENT, str(ANOTHER_UID), str(port), frame("127.0.0.1", port).hex()]
    return subprocess.run(command, cwd="/", stdout=subprocess.PIPE, timeout=_PATIENCE_S, check=True).stdout


def listening_ports(pid: int) -> set[int]:
    """TCP ports on which this process listens."""
    links = [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()]
    sockets = {found[1] for link in links if (found := re.fullmatch(r"socket:\[(\d+)\]", link))}
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTEN and fields[9] in sockets:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


def _utf(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()
