"""Core dumps and hidden memory, seen from another process of the same user, who is not root."""

import json
import sys
from pathlib import Path

from logkeep.kafka.client.settings import Endpoint
from tests.support.kafka.hostile_broker import SASL_AUTHENTICATE, BrokerRequest, authenticated, hostile_broker
from tests.support.plain_user import home_of_plain_user, started

PINS = """
import json, os, subprocess, sys
from pathlib import Path
from logkeep.model.process_memory import files_are_pinned, files_are_released, hide_memory
purged = Path("purged").open("w+b")
os.unlink("purged")
read = [sys.executable, "-c", "import sys; open(sys.argv[1], 'rb')", f"/proc/{os.getpid()}/fd/{purged.fileno()}"]
found = []
for step in (lambda: None, hide_memory, files_are_pinned, hide_memory, files_are_released):
    step()
    found.append(subprocess.run(read, stderr=subprocess.DEVNULL).returncode == 0)
print(json.dumps(found))
"""
CONFIG = """\
security.protocol=SASL_PLAINTEXT
sasl.mechanism=SCRAM-SHA-256
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="hush-4711";
"""


def test_files_of_a_process_with_a_secret_can_be_read_through_it_only_while_they_are_pinned() -> None:
    with home_of_plain_user() as home, started([sys.executable, "-c", PINS], home) as run:
        output, errors = run.communicate(timeout=60)
    assert run.returncode == 0, errors
    assert json.loads(output) == [True, False, True, True, False]


def _logkeep(home: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "logkeep.cli", *arguments, "--repo", str(home / "repo")]


def test_a_command_that_has_read_a_password_can_neither_be_dumped_nor_read() -> None:
    """The broker sees the process when the password was used: its files in /proc are root's, and no core is kept."""
    seen: list[tuple[int, str]] = []

    def answer(request: BrokerRequest) -> bytes | None:
        if request.key != SASL_AUTHENTICATE:
            return None
        process = Path(f"/proc/{run.pid}")
        limits = (process / "limits").read_text().splitlines()
        seen.append(((process / "environ").stat().st_uid, next(line for line in limits if "core file" in line)))
        return authenticated(request.correlation, b"e=other-error")

    with home_of_plain_user() as home, hostile_broker(answer) as broker:
        with started(_logkeep(home, "init"), home) as made:
            assert made.communicate(timeout=60)[1] == ""
        config = home / "client.properties"
        writing = f"umask 077; cat > {config} <<'end'\n{CONFIG}end\n"
        with started(["sh", "-c", writing], home) as wrote:
            wrote.communicate(timeout=60)
        named = ("--bootstrap-servers", str(Endpoint("127.0.0.1", broker.port)), "--command-config", str(config))
        with started(_logkeep(home, "kafka", "backup", "--source", "shop", *named), home) as run:
            _, errors = run.communicate(timeout=120)
    assert run.returncode == 52, errors
    assert [uid for uid, _ in seen] == [0] * len(seen) != []
    assert all(line.split()[4:6] == ["0", "0"] for _, line in seen), seen
