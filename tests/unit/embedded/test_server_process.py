"""Where a server works and what it inherits."""

import json
import sys
from pathlib import Path

from logkeep.embedded.process import ServerProcess

_SAYS = "import json, os; print(json.dumps([os.getcwd(), os.stat('.').st_mode & 0o777, os.environ['PYTHONSAFEPATH']]))"


def test_a_server_works_in_a_private_directory_and_imports_nothing_from_it(tmp_path: Path) -> None:
    """Also where another process has made the directory for everyone."""
    work, log = tmp_path / "work", tmp_path / "logs" / "server.log"
    work.mkdir()
    work.chmod(0o777)
    log.parent.mkdir()
    server = ServerProcess("server", [sys.executable, "-c", _SAYS], log, cwd=work).start()
    assert server._process is not None
    server._process.wait(60)
    server.stop()
    assert json.loads(log.read_text()) == [str(work), 0o700, "1"]
    assert [path.stat().st_mode & 0o777 for path in (log.parent, log)] == [0o700, 0o600]
