"""Properties files are read as Java reads them; JAAS entries are read strictly."""

import contextlib
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import ConfigError
from logkeep.kafka.client.security.jaas import parse_jaas
from logkeep.kafka.client.security.java_properties import parse_properties
from tests.property.untimed import untimed

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "expected"),
    (
        ("a=1", {"a": "1"}),
        ("a = 1 ", {"a": "1 "}),
        ("a:1\nb 2\nc\t=\t3", {"a": "1", "b": "2", "c": "3"}),
        ("a==1", {"a": "=1"}),
        ("a", {"a": ""}),
        ("# a=1\n ! b=2\n\n   c=3", {"c": "3"}),
        ("a=1\\\n   2\\\n  # 3", {"a": "12# 3"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("a\\ b\\=c=d", {"a b=c": "d"}),
        ("a=\\t\\n\\r\\f\\q\\u00fC\\\\", {"a": "\t\n\r\fq\u00fc\\"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=\\#1", {"a": "#1"}),
    ),
)
def test_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text, "x") == expected


def test_a_broken_escape_is_named_without_its_value() -> None:
    with pytest.raises(ConfigError, match="line 3") as caught:
        parse_properties("a=1\n\nsecret=topsecret\\u12", "client.properties")
    assert "topsecret" not in str(caught.value)


def _java_escaped(text: str, *, key: bool) -> str:
    """What `Properties.store` writes."""
    made = ""
    for at, each in enumerate(text):
        if each == " ":
            made += "\\ " if key or at == 0 else " "
        elif each in "\t\n\r\f":
            made += "\\" + "tnrf"["\t\n\r\f".index(each)]
        elif each in "\\=:#!":
            made += "\\" + each
        elif " " < each <= "~":
            made += each
        else:
            made += f"\\u{ord(each):04X}"
    return made


_TEXT = st.text(st.characters(max_codepoint=0xFFFF, codec="utf-8"))


@untimed
@given(st.dictionaries(_TEXT.filter(bool), _TEXT))
def test_what_java_writes_is_read_back(found: dict[str, str]) -> None:
    text = "".join(f"{_java_escaped(k, key=True)}={_java_escaped(v, key=False)}\n" for k, v in found.items())
    assert parse_properties(text, "x") == found


def test_a_jaas_entry() -> None:
    text = f'  {PLAIN} Required\n username="al\\"ice" password="p;=\\\\w\\101 d"  serviceName=kafka-1 ; '
    entry = parse_jaas(text, "x")
    assert entry.mechanisms == ("PLAIN",)
    assert entry.options == {"username": 'al"ice', "password": "p;=\\wA d", "serviceName": "kafka-1"}
    assert "p;=" not in repr(entry)


@untimed
@given(st.text() | st.text(";=\"\\' 0n", max_size=4))
def test_every_password_survives_its_quotes(password: str) -> None:
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    assert parse_jaas(f'{PLAIN} required password="{quoted}";', "x").options["password"] == password


@pytest.mark.parametrize(
    "text",
    (
        "",
        ";",
        PLAIN,
        f"{PLAIN};",
        f"{PLAIN} required",
        f'{PLAIN} sometimes password="secret-4711";',
        f'{PLAIN} required password="secret-4711;',
        f"{PLAIN} required password='secret-4711';",
        f"{PLAIN} required password=;;",
        f'{PLAIN} required password "=" "secret-4711";',
        f'{PLAIN} required password "secret-4711";',
        f'{PLAIN} required password=secret-4711"";',
        f'{PLAIN} required password="secret-4711"; {PLAIN} required;',
        'com.sun.security.auth.module.JndiLoginModule required url="ldap://secret-4711";',
        f'KafkaClient {{ {PLAIN} required password="secret-4711"; }};',
    ),
)
def test_anything_else_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.jaas\.config") as caught:
        parse_jaas(text, "client.properties")
    assert "secret-4711" not in str(caught.value)


@untimed
@given(st.text(string.printable))
def test_hostile_entries_end_in_our_error_or_an_entry(text: str) -> None:
    with contextlib.suppress(ConfigError):
        assert parse_jaas(f"{PLAIN} required {text}", "x").mechanisms == ("PLAIN",)
