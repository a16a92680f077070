"""Checking logs: against `sha256sum`, Apache's own reader, and a plain copy with a hash; memory; padding."""

import hashlib
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.zookeeper_files import PAYLOADS, Workload, cpu_s, set_data_bodies, write_log
from logkeep.engine.spark.jvm.jars import spark_home
from logkeep.formats.zookeeper.txnlog import ScannedLog, scan

_PIECE_BYTES = 4 << 20
_TOOLKIT = "org.apache.zookeeper.server.persistence.TxnLogToolkit"
_PEAK = """
import io, sys
from benchmarks.zookeeper_files import peak_mb
from logkeep.formats.jit import compile_from_now_on
from logkeep.formats.zookeeper.txnlog import header, scan
compile_from_now_on()
scan(io.BytesIO(header()))
before = peak_mb()
with open(sys.argv[1], "rb") as source:
    found = scan(source)
print(found.records, round(before), round(peak_mb()))
"""


def measure(workload: Workload) -> None:
    for label, payload in PAYLOADS.items():
        _speeds(label, workload, workload.log(payload))
    _padding(workload)
    _memory(workload)


def _speeds(label: str, workload: Workload, log: Path) -> None:
    """`verify` has the SHA-256 of what it checks in it, as every level of our verify does."""
    found = _scanned(log)
    used, copy = workload.folder / "used", workload.folder / "copy"
    with log.open("rb") as source, used.open("wb") as target:
        target.write(source.read(found.size_bytes))
    times = {
        "check alone": workload.best(lambda: _scanned(log)),
        "verify": workload.best(lambda: _hashed(log)),
        "sha256sum": workload.best(lambda: _run("sha256sum", str(used))),
        "verify + write": workload.best(lambda: _copied(log, copy)),
        "read + sha256 + write": workload.best(lambda: _plain_copy(used, copy)),
        "TxnLogToolkit -d": cpu_s(lambda: _run(*_toolkit(log))),
    }
    for name, seconds in times.items():
        speed = f"{found.size_bytes / seconds / 1e6:9,.0f} MB/s {found.records / seconds / 1e6:7.2f} M txn/s"
        print(f"  {label:6}{name:24}{seconds:8.2f} s {speed}")
    pairs = (("verify", "sha256sum"), ("verify", "TxnLogToolkit -d"), ("verify + write", "read + sha256 + write"))
    for ours, peer in pairs:
        print(f"  {label:6}{ours} / {peer}: {times[peer] / times[ours]:.2f} x")


def _scanned(log: Path) -> ScannedLog:
    with log.open("rb") as source:
        found = scan(source)
    assert not found.damage
    return found


def _hashed(log: Path) -> None:
    with log.open("rb") as source:
        assert not scan(source, sink=hashlib.sha256().update).damage


def _copied(log: Path, copy: Path) -> None:
    digest = hashlib.sha256()
    with log.open("rb") as source, copy.open("wb") as target:

        def kept(piece: memoryview) -> None:
            digest.update(piece)
            target.write(piece)

        assert not scan(source, sink=kept).damage


def _plain_copy(used: Path, copy: Path) -> None:
    digest = hashlib.sha256()
    with used.open("rb") as source, copy.open("wb") as target:
        while piece := source.read(_PIECE_BYTES):
            digest.update(piece)
            target.write(piece)


def _toolkit(log: Path) -> list[str]:
    """It wants the name of a log."""
    named = log.with_name("log.1")
    if named.exists() or named.is_symlink():
        named.unlink()
    named.symlink_to(log)
    jars = spark_home() / "jars"
    return ["java", "-Xmx512m", "-Dlog4j2.configurationFile=", "-cp", f"{jars}/*", _TOOLKIT, "-d", str(named)]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _padding(workload: Workload) -> None:
    log, padded = workload.log(PAYLOADS["100 B"]), workload.folder / "log.padded"
    shutil.copyfile(log, padded)
    used = _scanned(log).size_bytes
    os.truncate(padded, used)
    bare = workload.best(lambda: _scanned(padded))
    os.truncate(padded, 16 << 30)
    holes = workload.best(lambda: _scanned(padded))
    print(f"  16 GiB of holes behind {used / 1e6:.0f} MB: {holes / bare:.2f} x the time of the bare file")


def _memory(workload: Workload) -> None:
    log = workload.folder / "log.large"
    write_log(log, itertools.islice(set_data_bodies(900_000), max(workload.large_bytes // 900_000, 1)))
    command = [sys.executable, "-c", _PEAK, str(log)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    records, before, peak = map(int, done.stdout.split())
    label = f"{workload.large_bytes / 1e9:.1f} GB of 900 kB payloads, {records} records"
    print(f"  {label}: peak {peak - before} MB above the interpreter with its libraries, which is {before} MB")
    log.unlink()
