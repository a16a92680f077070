"""From the brokers' answers to the one right that is missing."""

from logkeep.kafka.restore.facts.permissions import (
    Right,
    RightsAnswers,
    RightsFound,
    RightsWanted,
    compare_rights,
    missing_rights_error,
    rights_findings,
)

_ALL = frozenset({"CREATE", "DESCRIBE", "WRITE", "READ", "ALTER_CONFIGS", "DESCRIBE_CONFIGS", "DELETE", "ALTER"})
_NOTHING = RightsFound((), ())


def _missing(wanted: RightsWanted, answers: RightsAnswers) -> list[tuple[str, str]]:
    return [(r.name, r.operation) for r in compare_rights(wanted, answers).missing]


def test_one_missing_right_of_many() -> None:
    wanted = RightsWanted(new_topics=("a", "b"), existing_topics=("c",), shortened=frozenset({"a", "c"}))
    answers = RightsAnswers(topics={"a": _ALL, "b": _ALL - {"DELETE"}, "c": _ALL})
    assert compare_rights(wanted, answers) == _NOTHING, "nothing of b is deleted"
    assert _missing(wanted, RightsAnswers(topics={"a": _ALL, "b": _ALL, "c": _ALL - {"DELETE"}})) == [("c", "DELETE")]
    assert _missing(wanted, RightsAnswers(topics=answers.topics, creating={"b": 29, "a": 36})) == [("b", "CREATE")]


def test_who_may_not_describe_may_not_write() -> None:
    wanted = RightsWanted(new_topics=("a", "b"))
    found = compare_rights(wanted, RightsAnswers(topics={"a": None, "b": _ALL}, creating={"a": 29}, altering={"a": 29}))
    assert {r.operation for r in found.missing} == {"CREATE", "DESCRIBE", "WRITE", "READ", "ALTER_CONFIGS"}
    assert found.unknown == (Right("TOPIC", "a", "DESCRIBE_CONFIGS"),)
    found = compare_rights(wanted, RightsAnswers(topics={"a": None, "b": _ALL}))
    assert {r.operation for r in found.missing} == {"DESCRIBE", "WRITE", "READ"}
    assert found.unknown == ()


def test_an_idempotent_producer_needs_one_topic_or_the_cluster() -> None:
    wanted = RightsWanted(existing_topics=("a", "b"))
    one = {"a": _ALL, "b": _ALL - {"WRITE"}}
    assert _missing(wanted, RightsAnswers(topics=one)) == [("b", "WRITE")]
    none = dict.fromkeys(("a", "b"), _ALL - {"WRITE"})
    assert ("kafka-cluster", "IDEMPOTENT_WRITE") in _missing(
        wanted, RightsAnswers(topics=none, cluster=frozenset({"DESCRIBE"}))
    )
    unknown = compare_rights(wanted, RightsAnswers(topics=none)).unknown
    assert unknown == (Right("CLUSTER", "kafka-cluster", "IDEMPOTENT_WRITE"),)


def test_groups_and_transactional_ids() -> None:
    wanted = RightsWanted(groups=("g", "h"), transactional_ids=("t", "u"))
    answers = RightsAnswers(
        groups={"g": 16, "h": 30}, describing_ids={"t": 16, "u": 105}, writing_ids={"t": 53, "u": 49}
    )
    assert _missing(wanted, answers) == [("h", "READ"), ("t", "WRITE")]


def test_acls_and_quotas_need_the_cluster() -> None:
    wanted = RightsWanted(acls=True, quotas=True)
    everything = frozenset({"ALTER", "DESCRIBE", "ALTER_CONFIGS", "DESCRIBE_CONFIGS"})
    assert compare_rights(wanted, RightsAnswers(cluster=everything)) == _NOTHING
    for each in everything:
        assert _missing(wanted, RightsAnswers(cluster=everything - {each})) == [("kafka-cluster", each)]
    found = compare_rights(wanted, RightsAnswers(cluster=None, quotas=31))
    assert {r.operation for r in found.missing} == {"ALTER", "DESCRIBE", "ALTER_CONFIGS"}
    assert {r.operation for r in found.unknown} == {"DESCRIBE_CONFIGS"}
    assert {r.operation for r in compare_rights(wanted, RightsAnswers(cluster=None)).missing} == {"ALTER", "DESCRIBE"}


def test_what_to_grant_is_said() -> None:
    found = RightsFound(
        missing=(Right("TOPIC", "a", "DESCRIBE_CONFIGS"), Right("TOPIC", "a", "WRITE"), Right("CLUSTER", "x", "ALTER")),
        unknown=(Right("GROUP", "g", "READ"),),
    )
    first, second, third = rights_findings(found, "User:eve")
    assert (first.code, first.where, first.what) == (
        "right-missing",
        "topic a",
        "this user may not DESCRIBE_CONFIGS, WRITE",
    )
    command = "kafka-acls --add --allow-principal User:eve --operation DescribeConfigs --operation Write --topic a"
    assert first.remedy == command
    assert second.remedy.endswith("--operation Alter --cluster")
    assert (third.code, third.where) == ("right-unknown", "group g")
    error = missing_rights_error(found, "User:eve")
    assert error is not None
    assert error.exit_code == 52
    assert error.what == "this user lacks DESCRIBE_CONFIGS, WRITE on topic a; ALTER on the cluster"
    assert command in error.remedy
    assert missing_rights_error(_NOTHING, "User:eve") is None
