"""Backups of one topic with the cut of an application, made by hand, without a broker."""

from logkeep.application.kafka.cut_document import ApplicationLog, CutReader, ParticipantCut, put_cut
from logkeep.application.kafka.headers import Stamps
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token
from logkeep.repository.backups.manifest import AttachmentRef
from tests.support.kafka.compacted_backups import CompactedSource


def back_up_cut(source: CompactedSource, end: int = 4, *, transactional: bool = True) -> int:
    """The group `g` of application `shop` has read to offset 3; the cut ends at `end`."""
    source.groups = {"g": 3}

    def attach(backup_id: BackupId) -> AttachmentRef:
        place = source.place
        log = ApplicationLog(source.topic, 0, 3, end, (CutReader("g", 3),))
        cut = ParticipantCut(
            repository=place.repository, source=place.source, id=backup_id, application="shop",
            stamp=Stamps.of("shop").application.hex(), history=1, transactional=transactional, forced=0,
            disagreeing=0, logs=(log,),
        )  # fmt: skip
        return put_cut(place, backup_id, cut, random_token())

    return source.back_up(attach=attach)
