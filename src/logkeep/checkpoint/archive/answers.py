"""What the partitions' answers to a create mean for its backup. Pure."""

from collections.abc import Mapping

from logkeep.checkpoint.aggregation import MustFail
from logkeep.checkpoint.records import CheckpointDocument


def unanswered(partitions: int, answers: Mapping[int, CheckpointDocument]) -> list[int]:
    return [partition for partition in range(partitions) if partition not in answers]


def used_elsewhere(nonce: str, answers: Mapping[int, CheckpointDocument]) -> int | None:
    """A partition that took the checkpoint for another create. One that a message forced has no nonce, and counts."""
    return next((number for number, answer in sorted(answers.items()) if answer.nonce not in {"", nonce}), None)


def refused(
    checkpoint_id: int,
    history: int,
    repository: str,
    answers: Mapping[int, CheckpointDocument],
    *,
    marker: bool = False,
) -> MustFail | None:
    """Why the answers mean that the backup, or the checkpoint without a copy, can never complete."""
    for partition, answer in sorted(answers.items()):
        if answer.marker and not marker:
            return MustFail(f"{checkpoint_id} is a checkpoint without a copy: choose another id", partition)
        if answer.history != history:
            return MustFail(f"it was restored meanwhile: it is in history {answer.history}, not {history}", partition)
        if not answer.marker and answer.repository != repository:
            where = f"repository {answer.repository}" if answer.repository else "no repository"
            return MustFail(f"it archives to {where}, and the backup is in repository {repository}", partition)
        if answer.latest > checkpoint_id:
            return MustFail(f"it jumped over {checkpoint_id}: its latest checkpoint is {answer.latest}", partition)
    return None
