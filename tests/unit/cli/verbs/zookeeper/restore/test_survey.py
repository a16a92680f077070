"""The text of `zookeeper restore survey` on a narrow terminal."""

from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.zookeeper.restore.survey import SurveyedMember, SurveyReport, survey

UNCHECKED = "no log directory was named for /var/lib/zookeeper: logs in a dataLogDir would be replayed"


def test_what_was_not_checked_is_wrapped_between_words() -> None:
    member = SurveyedMember(
        member="zk1", data_dir="/d", log_dir="/l", snapshots=1, logs=1, highest_zxid="0x5", epochs=(), running=(),
        unchecked=(UNCHECKED,),
    )  # fmt: skip
    report = SurveyReport(machine="host", taken="2026-11-18T10:00:00Z", file="zk1.survey.json", members=(member,))
    lines = survey.job.text(report, TerminalStyle(width=60)).splitlines()
    assert lines[1:3] == [
        "NOT CHECKED  no log directory was named for",
        "             /var/lib/zookeeper: logs in a dataLogDir would",
    ]
