"""A reward that was learned: a head of an exported model, such as a Bradley-Terry reward model."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from grupo.core.component import component
from grupo.core.dtypes import DtypeName
from grupo.core.ranges import NonEmptyString, PositiveInt
from grupo.core.types import Rollout, Task
from grupo.rewards.base import RewardValue, SelfTimedReward
from grupo.util.event_loop import run_on_main_thread


@component
class LearnedReward(SelfTimedReward):
    """The output of a trained head in the state before the last token of a rollout.

    The model is loaded once per process. Its tokenizer encodes the messages of the rollout, so that
    it may differ from the policy's.

    Args:
        model: Folder that `grupo export` wrote of a run whose method trains the head.
        head: Name of the head.
        dtype: Type of computations, "float32" or "bfloat16"; float32 where the device would
            emulate it.
        device: "auto" (the first GPU, otherwise the CPU), "cpu", "cuda" or "cuda:0".
        tokens_per_microbatch: Tokens evaluated at once; prefixes that rollouts share count once.
    """

    model: NonEmptyString
    head: NonEmptyString = "score"
    dtype: DtypeName = "bfloat16"
    device: str = "auto"
    tokens_per_microbatch: PositiveInt = 16384

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` if there is no such head, or a prompt is longer than its context."""
        self._loaded().check_prompts(tasks)

    async def __call__(
        self, task: Task, rollouts: Sequence[Rollout]
    ) -> Sequence[RewardValue | Exception]:
        return await run_on_main_thread(lambda: self._loaded().scores(rollouts))

    def _loaded(self) -> Any:
        return _load(self)


@cache
def _load(reward: LearnedReward) -> Any:
    from grupo.models.head_model import HeadModel  # imports transformers

    return HeadModel(
        reward.model,
        reward.head,
        dtype=reward.dtype,
        device=reward.device,
        tokens_per_microbatch=reward.tokens_per_microbatch,
    )
