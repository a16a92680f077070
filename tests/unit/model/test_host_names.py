"""Names of hosts, and addresses of HTTP servers."""

import pytest

from logkeep.model.host_names import http_address


@pytest.mark.parametrize(
    "text", ["http://host", "https://[::1]:8443/path", "http://user@127.0.0.1:1", "HTTP://host:80"]
)
def test_an_address(text: str) -> None:
    found = http_address(text)
    assert found is not None
    assert found.hostname


@pytest.mark.parametrize(
    "text",
    [
        "host:8080",
        "ftp://host",
        "http://",
        "http://host:0",
        "http://host:70000",
        "http://[::1",
        "http://a b/",
        "http://.x",
    ],
)
def test_no_address(text: str) -> None:
    assert http_address(text) is None
