"""What `zkbackup restore` says before it asks, and when it is done. Pure."""

import shlex
from pathlib import Path
from typing import Any, Final

import msgspec

from logkeep.cli.terminal.boxes import BAD, FAIR, GOOD, title, told
from logkeep.cli.terminal.text import TerminalStyle, plural, size
from logkeep.cli.zkbackup.findings_text import finding_lines
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.restore.finish import RestoreEnd, RestoreEndState
from logkeep.zookeeper.restore.prepare import PreparedRestore
from logkeep.zookeeper.restore.values import RestoreReceipt


def plan_text(view: BundleView, prepared: PreparedRestore, look: TerminalStyle) -> str:
    planned, path, place = prepared.planned, prepared.path, prepared.places[0]
    held = planned.held[0]
    there = "nothing" if held.empty else f"{plural(held.snapshots, 'snapshot')}, {plural(held.logs, 'log')}"
    later = f"Left out:   {path.next_left_out} and everything later" if path.next_left_out else ""
    lines = [
        *title("Restore plan"),
        f"Backup:     {view.name}, taken {view.info.backup_timestamp}, up to {view.info.backup_zxid.hex}",
        f"Tree at:    {path.stands_at}, {', '.join([path.proof, *path.labels])}",
        *([later] if later else []),
        f"            {plural(planned.nodes, 'znode')}, {size(planned.size_bytes)}, sessions: {planned.sessions}",
        f"Data dir:   {place.data.path}",
        f"Log dir:    {place.log.path}",
        f"Replaces:   {there}; kept beside the new data" if not held.empty else "Replaces:   nothing",
        f"Server at:  {hex_zxid(planned.named)} when it starts",
        *([f"Epoch:      {planned.epoch}, in both epoch files"] if planned.epoch is not None else []),
        *(f"{FAIR} not checked: {what}" for what in planned.unchecked),
        *finding_lines(planned.findings),
        *(f"{BAD} in the way: {obstacle} (try: {obstacle.remedy})" for obstacle in planned.obstacles),
    ]
    return told("\n".join(lines), look)


def plan_document(view: BundleView, prepared: PreparedRestore) -> dict[str, Any]:
    planned, path = prepared.planned, prepared.path
    return {
        "dry_run": True,
        "backup_id": view.name,
        "backup_dir": str(view.path),
        "zxid": planned.zxid,
        "named_zxid": planned.named,
        "epoch": planned.epoch,
        "proof": path.proof.value,
        "labels": list(path.labels),
        "stands_at": _moment(path.stands_at.zxid, path.stands_at.time_ms),
        "next_left_out": _moment(path.next_left_out.zxid, path.next_left_out.time_ms) if path.next_left_out else None,
        "nodes": planned.nodes,
        "size_bytes": planned.size_bytes,
        "sessions": planned.sessions.value,
        "form": planned.form.value,
        "data_dir": str(prepared.places[0].data.path),
        "log_dir": str(prepared.places[0].log.path),
        "unchecked": list(planned.unchecked),
        "findings": msgspec.to_builtins(planned.findings),
        "obstacles": [{"error": o.slug(), "message": str(o), "remedy": o.remedy} for o in planned.obstacles],
    }


def _moment(zxid: int, time_ms: int | None) -> dict[str, Any]:
    return {"hex": hex_zxid(zxid), "decimal": zxid, "time_ms": time_ms}


def restored_text(view: BundleView, receipt: RestoreReceipt, kept: Path | None, host: str, look: TerminalStyle) -> str:
    target = receipt.targets[0]
    name, _, port = host.rpartition(":")
    places = f"--zk-data-dir {shlex.quote(target.data_dir)} --zk-log-dir {shlex.quote(target.log_dir)}"
    beside = [f"  {path}" for path in target.kept]
    lines = [
        f"{GOOD} Restore completed: {view.name} at {hex_zxid(receipt.zxid)}",
        "",
        f"Proof:      {receipt.proof}; {plural(receipt.digests_compared, 'digest')} compared over "
        f"{plural(receipt.transactions, 'transaction')}",
        f"Tree:       {plural(receipt.nodes, 'znode')}",
        *([f"Dropped:    {plural(receipt.dropped_sessions, 'session')}, "
           f"{plural(receipt.dropped_ephemerals, 'ephemeral')}"]
          if receipt.dropped_sessions else []),
        *([f"Receipt:    {kept}"] if kept else []),
        *(["What was there before is kept in:", *beside] if beside else []),
        *(f"{FAIR} not checked: {what}" for what in receipt.unchecked),
        *finding_lines(receipt.findings),
        "",
        "Next steps:",
        "1. Start ZooKeeper:",
        "   zkServer.sh start",
        "",
        "2. Check its zxid:",
        f"   echo srvr | nc {name or host} {port or 2181} | grep Zxid",
        f"   expected, until the first session: {hex_zxid(receipt.named_zxid)}"
        + (f" (its tree stands at {hex_zxid(receipt.zxid)})" if receipt.zxid != receipt.named_zxid else ""),
        "",
        "3. Look at the data:",
        f"   zkCli.sh -server {host}",
        "   ls /",
        "",
        "4. If it is not what you wanted, stop ZooKeeper and roll back:",
        "   zkServer.sh stop",
        f"   zkbackup restore --rollback {places}",
        "   zkServer.sh start",
        "",
        "Where a repository holds backups of this server, the next one needs --new-history.",
    ]  # fmt: skip
    return told("\n".join(lines), look)


_ENDED: Final = {
    RestoreEndState.NEW: (GOOD, "the restored data is in place"),
    RestoreEndState.OLD: (GOOD, "what was there before is back in place"),
    RestoreEndState.NOTHING: (BAD, "nothing was restored, run the restore again"),
}


def ended_text(ended: RestoreEnd, look: TerminalStyle, receipt: Path | None = None) -> str:
    sign, which = _ENDED[ended.outcome]
    lines = [
        f"{sign} Restore {ended.restore}: {which}",
        *(f"  {path}" for path in ended.data_dirs),
        *([f"Receipt: {receipt}"] if receipt else []),
        *(["Kept beside it:", *(f"  {path}" for path in ended.kept)] if ended.kept else []),
        *(f"{FAIR} not checked: {what}" for what in ended.unchecked),
        *finding_lines(ended.findings),
        *(f"Next: {step}" for step in ended.next_steps),
    ]
    return told("\n".join(lines), look)
