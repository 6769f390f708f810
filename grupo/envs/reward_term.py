"""Reward terms: the named, weighted components of the reward."""

from collections.abc import Sequence
from functools import cached_property

from grupo.core.component import component
from grupo.core.ranges import Finite
from grupo.core.types import Task
from grupo.rewards import Reward, RewardSource, load_reward
from grupo.rewards.by_column import task_validators
from grupo.util.errors import ConfigError

# `reward/<name>` is another metric for these
RESERVED_NAMES = ("answer_error", "failed", "mean", "std", "total")


@component
class RewardTerm:
    """A named, weighted component of the reward.

    Args:
        name: Its key in `Rollout.reward_terms`, and in the metrics as `reward/<name>`.
        fn: A reward, a plain function in one of the signatures of `grupo.rewards.as_reward`, or the
            address of either, `module:name` or `file.py:name`. A function is adapted, and an
            address imported, when the term is made.
        weight: Its weight in the total reward; 0 measures it only.
        answer_error_score: Its value for an answer that makes `fn` exceed a limit of time, memory
            or recursion; at most the value of a wrong answer, or hanging `fn` would be rewarded.
    """

    name: str
    fn: RewardSource
    weight: Finite = 1.0
    answer_error_score: Finite = 0.0

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name or self.name in RESERVED_NAMES:
            raise ConfigError(
                f"name: {self.name!r}. Allowed: a name without '/' that is none of"
                f" {RESERVED_NAMES}."
            )
        reward = self.reward
        object.__setattr__(self, "fn", self.fn if isinstance(self.fn, str) else reward)

    @cached_property
    def reward(self) -> Reward:
        """The reward that `fn` is or names."""
        return load_reward(self.fn)

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task that the reward at an address cannot score."""
        for validator in task_validators(self.reward) if isinstance(self.fn, str) else ():
            validator.validate_tasks(tasks)
