"""ACLs and quotas that would be added: never more than the archive has, never less of what is there."""

from hypothesis import given
from hypothesis import strategies as st

from logkeep.kafka.admin.security import AclBinding, Quota
from logkeep.kafka.record.documents import AclRecord, QuotaRecord
from logkeep.kafka.restore.security import plan_acls, plan_quotas, scram_finding


def _rule(name: str, kind: str = "TOPIC", pattern: str = "LITERAL", who: str = "User:a") -> AclRecord:
    return AclRecord(kind, name, pattern, who, "*", "READ", "ALLOW")


def _acl(name: str, kind: str = "TOPIC", pattern: str = "LITERAL", who: str = "User:a") -> AclBinding:
    return AclBinding(kind, name, pattern, who, "*", "READ", "ALLOW")


def test_only_topics_by_name_are_renamed() -> None:
    archived = [_rule("old"), _rule("old", "GROUP"), _rule("*"), _rule("ol", pattern="PREFIXED")]
    plan = plan_acls(archived, [_acl("*"), _acl("else")], {"old": "new"})
    assert set(plan.add) == {_acl("new"), _acl("old", "GROUP"), _acl("ol", pattern="PREFIXED")}
    assert (plan.present, plan.other) == ((_acl("*"),), 1)
    (finding,) = plan.findings
    assert finding.code == "acl-prefix"
    assert "it matched old," in finding.what
    assert plan_acls(archived, [], {"old": "older"}).findings == (), "the prefix still fits"


def test_rules_of_topics_that_do_not_come_back() -> None:
    archived = [_rule("a"), _rule("b"), _rule("*"), _rule("b", "GROUP"), _rule("b", pattern="PREFIXED")]
    plan = plan_acls(archived, [], {}, only_topics={"a"})
    assert set(plan.add) == {_acl("a"), _acl("*"), _acl("b", "GROUP"), _acl("b", pattern="PREFIXED")}


def test_clusters_without_authorizer() -> None:
    plan = plan_acls([_rule("a")], None, {})
    assert plan.add == ()
    assert [f.code for f in plan.findings] == ["authorizer-missing"]
    assert plan_acls([], None, {}).findings == ()
    assert [f.code for f in plan_acls(None, [_acl("a")], {}).findings] == ["acls-not-archived"]


_names = st.sampled_from(["a", "b", "c", "*"])
_rules = st.builds(
    _rule, _names, st.sampled_from(["TOPIC", "GROUP"]), st.sampled_from(["LITERAL", "PREFIXED"]), st.sampled_from("xy")
)


@given(st.lists(_rules), st.lists(_rules), st.dictionaries(st.sampled_from("abc"), st.sampled_from("def")))
def test_afterwards_all_that_was_archived_is_there(
    archived: list[AclRecord], there: list[AclRecord], renamed: dict[str, str]
) -> None:
    present = [_acl(r.resource_name, r.resource_type, r.pattern, r.principal) for r in there]
    plan = plan_acls(archived, present, renamed)
    after = {*present, *plan.add}
    for rule in archived:
        by_name = rule.resource_type == "TOPIC" and rule.pattern == "LITERAL"
        name = renamed.get(rule.resource_name, rule.resource_name) if by_name else rule.resource_name
        assert _acl(name, rule.resource_type, rule.pattern, rule.principal) in after
    assert not {*plan.add} & {*present}
    assert len(after) == len(plan.add) + len(plan.present) + plan.other
    again = plan_acls(archived, sorted(after), renamed)
    assert again.add == ()


def test_quotas_fill_up_and_overwrite_nothing() -> None:
    entity = (("user", "a"), ("client-id", None))
    archived = [QuotaRecord(entity, (("x", 1.0), ("y", 2.0), ("z", 3.0))), QuotaRecord((("ip", "::1"),), (("r", 5.0),))]
    there = [Quota(tuple(reversed(entity)), (("x", 1.0), ("y", 7.0), ("w", 0.5)))]
    plan = plan_quotas(archived, there)
    assert plan.add == (Quota(entity, (("z", 3.0),)), Quota((("ip", "::1"),), (("r", 5.0),)))
    assert (plan.present, plan.other) == (1, 1)
    (finding,) = plan.findings
    assert finding.code == "quota-differs"
    assert finding.what == "y is 7 in the target and stays so; archived is 2"
    assert plan_quotas([], there).add == ()


def test_scram_is_told() -> None:
    assert scram_finding(archived=False) == []
    (finding,) = scram_finding(archived=True)
    assert (finding.code, finding.severity) == ("scram-not-restored", "warning")
