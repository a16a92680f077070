"""`logkeep zookeeper backup --admin-server`: a snapshot over HTTP, without access to the server's disk."""

import re
import time

from logkeep.cli.frame.execute import Run
from logkeep.cli.verbs.zookeeper.members import named_value
from logkeep.cli.wiring import WarmEngines
from logkeep.config.options import (
    ADMIN_SERVER,
    AUTH_FILE,
    CONFIG_DIRS,
    FOLLOW,
    INCLUDE_CONFIG,
    MAX_SNAPSHOT_BYTES,
    NEW_HISTORY,
    ZK_MEMBERS,
    Options,
)
from logkeep.errors import UsageError
from logkeep.model.secret import Secret
from logkeep.zookeeper.backup.admin_snapshot import back_up_by_admin
from logkeep.zookeeper.backup.run import ZooKeeperBackupDone
from logkeep.zookeeper.repo.sink import ArchiveSink
from logkeep.zookeeper.server.admin_download import DownloadLimits
from logkeep.zookeeper.server.admin_http import AdminServer, admin_url, authorization_of

_DISK_OPTIONS: Options = (*ZK_MEMBERS, INCLUDE_CONFIG, CONFIG_DIRS, FOLLOW)


def admin_member(run: Run) -> tuple[str, AdminServer] | None:
    """The member's name and its AdminServer; None where --admin-server is not given. Raises UsageError, ConfigError."""
    given: str | None = run[ADMIN_SERVER]
    if given is None:
        if run[AUTH_FILE] is not None:
            raise UsageError("--auth-file is only for an AdminServer", remedy="add --admin-server http://HOST:8080")
        return None
    name, text = named_value(given)
    url = admin_url(text)
    other = next((option for option in _DISK_OPTIONS if run.settings[option] != option.default), None)
    if other is not None or run.dry_run:
        flag = "--dry-run" if other is None else f"--{other.name}"
        why = "the server writes a snapshot to answer" if other is None else "that needs the server's own files"
        raise UsageError(f"--admin-server and {flag} exclude each other: {why}", remedy=f"leave {flag} out")
    limits = DownloadLimits(most_bytes=run[MAX_SNAPSHOT_BYTES])
    return name or _host_name(url), AdminServer(url, _authorization(run), limits=limits)


def _host_name(url: str) -> str:
    host = url.partition("://")[2].rpartition(":")[0]
    return re.sub(r"[^A-Za-z0-9._-]", "-", host)[:64].strip("-")


def _authorization(run: Run) -> Secret | None:
    path = run[AUTH_FILE]
    if path is None:
        return None
    from logkeep.zookeeper.server.credentials import read_credentials  # noqa: PLC0415 - it loads the client library

    credentials = read_credentials(path)
    if len(credentials) > 1:
        what = f"it has {len(credentials)} credentials, and an AdminServer takes one"
        raise UsageError(what, subject=str(path), remedy="name a file with the one that has all permissions on /")
    return authorization_of(*credentials[0])


def back_up_over_http(run: Run, member: str, server: AdminServer, sink: ArchiveSink) -> ZooKeeperBackupDone:
    return back_up_by_admin(server, member, sink, WarmEngines(run), time.sleep, new_history=run[NEW_HISTORY])
