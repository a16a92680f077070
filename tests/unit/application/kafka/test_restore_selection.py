"""Which offsets of an application's logs are restored."""

from logkeep.application.kafka.cut_document import ApplicationLog, CutReader, ParticipantCut
from logkeep.application.kafka.restore import restore_selection
from logkeep.model.segments import Collection, LogName
from logkeep.repository.backups.manifest import LogCut


def cut_of(*logs: ApplicationLog) -> ParticipantCut:
    return ParticipantCut(
        repository="r",
        source="shop",
        id=5,
        application="shop",
        stamp="",
        history=1,
        transactional=True,
        forced=0,
        disagreeing=0,
        logs=logs,
    )


def archived(topic: str, start: int, end: int) -> LogCut:
    return LogCut(LogName(Collection.TOPICS, topic, "h", 0), start, end)


def test_v12_a_log_ends_at_the_larger_of_both_positions() -> None:
    cut = cut_of(
        ApplicationLog("a.b", 0, 10, 30, (CutReader("g", 12), CutReader("h", 8))), ApplicationLog("out", 0, 4, 9)
    )
    selection = restore_selection(cut, [archived("a.b", 0, 40), archived("out", 0, 20)])
    assert selection.until_offsets == ("a.b:0=12", "out:0=4")
    assert selection.include == (r"a\.b", "out")


def test_a_log_whose_retention_passed_the_cut_is_restored_empty() -> None:
    cut = cut_of(ApplicationLog("a", 0, 10, 30, (CutReader("g", 12),)))
    assert restore_selection(cut, [archived("a", 25, 40)]).until_offsets == ("a:0=25",)
