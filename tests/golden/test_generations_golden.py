"""Bytes of documents about generations, kept for ever."""

import msgspec

from logkeep.model.segments import Collection, LogName, Segment
from logkeep.repository.backups.catch_ups import CatchUpReceipt, CatchUpStep
from logkeep.repository.chain.actions import (
    BackupAction,
    BegunCatchUp,
    Commit,
    EndedCatchUp,
    GenerationsAction,
    GenerationStart,
    ObjectRef,
    PlainAction,
    Summary,
    version_for,
)
from logkeep.repository.chain.documents import seal, unseal

ID = "0" * 30 + "aa"


def _commit(action: PlainAction) -> Commit:
    return Commit(
        version=version_for(action), repository="r", source="prod", generation=7, previous="p", run="run", nonce="n",
        time="2026-11-15T00:00:00.000Z", action=action,
    )  # fmt: skip


def _line(document: Commit | CatchUpReceipt) -> str:
    data = seal(document)
    assert unseal(data, type(document), "golden") == document
    return data.split(b"\n")[0].decode()


def test_the_commit_of_catch_ups() -> None:
    action = GenerationsAction(
        starts=(GenerationStart("accounts", ID, "2026-11-01T00:00:00.000Z", 1),),
        begun=(BegunCatchUp("a" * 16, "accounts", ID, 2, "asked for"),),
        ended=(EndedCatchUp("b" * 16, "deleted"),),
    )
    assert _line(_commit(action)) == (
        '{"type":"commit","version":2,"repository":"r","source":"prod","generation":7,"previous":"p","run":"run",'
        '"nonce":"n","time":"2026-11-15T00:00:00.000Z","action":{"kind":"generations",'
        f'"starts":[{{"topic":"accounts","topic_id":"{ID}","began":"2026-11-01T00:00:00.000Z","number":1}}],'
        f'"begun":[{{"token":"aaaaaaaaaaaaaaaa","topic":"accounts","topic_id":"{ID}","number":2,'
        '"reason":"asked for"}],"ended":[{"token":"bbbbbbbbbbbbbbbb","reason":"deleted"}]}}'
    )


def test_the_commit_of_a_backup_that_switches() -> None:
    summary = Summary(started="t", logs=1, segments=1, records=1, stored_bytes=1, new_bytes=1)
    plain = BackupAction(5, ObjectRef("c" * 16, 1, "0" * 64), summary)
    switching = _line(_commit(msgspec.structs.replace(plain, switched=("a" * 16,))))
    assert switching.startswith('{"type":"commit","version":2,')
    assert switching.endswith('"tags":[],"group":[]},"switched":["aaaaaaaaaaaaaaaa"]}}')
    assert "switched" not in _line(_commit(plain))


def test_the_receipt_of_a_catch_up() -> None:
    log = LogName(Collection.TOPICS, "accounts", f"{ID}-2", 0)
    segment = Segment(
        log=log, start=0, end=4, first=0, token="d" * 16, records=4, stored_bytes=9, plain_bytes=9, base_time_ms=-1,
        max_time_ms=-1, sha256="0" * 64, plain_sha256="0" * 64,
    )  # fmt: skip
    receipt = CatchUpReceipt(
        repository="r", source="prod", catch_up="a" * 16, step=CatchUpStep.VERIFIED, run="run", unit="u",
        segments=(segment,), note="[]",
    )  # fmt: skip
    line = _line(receipt)
    assert line.startswith(
        '{"type":"catch-up-receipt","version":1,"repository":"r","source":"prod","catch_up":"aaaaaaaaaaaaaaaa",'
        '"step":"verified","run":"run","unit":"u","segments":[{"log":{"collection":"topics",'
    )
    assert line.endswith('}],"note":"[]"}')
