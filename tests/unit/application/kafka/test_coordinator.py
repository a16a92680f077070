"""What a coordinator of participants tells its user."""

from logkeep.application.kafka.coordinator import _unanswered
from logkeep.config.options import CHECKPOINT_TIMEOUT


def test_a_task_that_does_not_answer_is_named_with_the_option_that_gives_it_more_time() -> None:
    found = _unanswered({("g", (("orders", 0),))}, 3, 60.0)
    assert (found.subject, found.what) == ("group g, orders/0", "it took no checkpoint within 60 s (2 of 3 tasks did)")
    assert f"--{CHECKPOINT_TIMEOUT.name}" in found.remedy
