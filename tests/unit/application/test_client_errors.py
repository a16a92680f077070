"""Calls of the admin client that get no answer."""

from concurrent.futures import Future

import pytest

from logkeep.application.client_errors import client_answer
from logkeep.errors import ClusterUnreachable


def test_a_call_without_an_answer_is_an_unreachable_cluster() -> None:
    answered: Future[int] = Future()
    answered.set_result(7)
    assert client_answer(answered, "shop.log", 0) == 7
    with pytest.raises(ClusterUnreachable, match="no broker answered within 0 s"):
        client_answer(Future(), "shop.log", 0)
