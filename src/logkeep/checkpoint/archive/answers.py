"""What the partitions' answers to a create mean for its backup. Pure."""

from collections.abc import Mapping

from logkeep.checkpoint.aggregation import MustFail
from logkeep.checkpoint.records import CheckpointDocument


def unanswered(partitions: int, answers: Mapping[int, CheckpointDocument]) -> list[int]:
    return [partition for partition in range(partitions) if partition not in answers]


def refused(
    checkpoint_id: int, history: int, repository: str, answers: Mapping[int, CheckpointDocument]
) -> MustFail | None:
    """Why the answers mean that the backup can never complete."""
    for partition, answer in sorted(answers.items()):
        if answer.history != history:
            return MustFail(f"it was restored meanwhile: it is in history {answer.history}, not {history}", partition)
        if not answer.marker and answer.repository != repository:
            where = f"repository {answer.repository}" if answer.repository else "no repository"
            return MustFail(f"it archives to {where}, and the backup is in repository {repository}", partition)
        if answer.latest > checkpoint_id:
            return MustFail(f"it jumped over {checkpoint_id}: its latest checkpoint is {answer.latest}", partition)
    return None
