"""The state of a backup over several sources."""

import pytest

from logkeep.repository.backups.states import StateName, group_state

S = StateName


@pytest.mark.parametrize(
    ("members", "group"),
    [
        ([S.COMPLETED, S.COMPLETED], S.COMPLETED),
        ([S.COMPLETED, S.FAILED], S.FAILED),
        ([S.ONGOING, S.FAILED], S.FAILED),
        ([S.COMPLETED, S.ONGOING], S.ONGOING),
        ([S.DOES_NOT_EXIST, S.ONGOING], S.ONGOING),
        ([S.COMPLETED, S.DOES_NOT_EXIST], S.DOES_NOT_EXIST),
        ([S.DOES_NOT_EXIST], S.DOES_NOT_EXIST),
        ([], S.DOES_NOT_EXIST),
    ],
)
def test_the_state_of_a_group(members: list[StateName], group: StateName) -> None:
    assert group_state(members) is group
