"""Small decisions of the embedded broker."""

import base64

from logkeep.embedded.kafka import cluster_id


def test_a_cluster_id_never_looks_like_an_option() -> None:
    dash = base64.urlsafe_b64decode("-AAAAAAAAAAAAAAAAAAAAA==")
    plain = base64.urlsafe_b64decode("AAAAAAAAAAAAAAAAAAAAAA==")
    drawn = iter([dash, dash, plain])
    assert cluster_id(lambda: next(drawn)) == "AAAAAAAAAAAAAAAAAAAAAA"
