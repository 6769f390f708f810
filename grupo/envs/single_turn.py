"""The environment of one prompt and one answer, scored by reward terms."""

from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.ranges import FiniteSeconds
from grupo.core.types import Observation, RewardResult, Rollout, Task
from grupo.envs.on_failure import FailureHandler, drop_rollout
from grupo.envs.reward_term import RewardTerm
from grupo.envs.scoring import apply_failure_handler, score_rollouts
from grupo.util.errors import ConfigError


@component
class SingleTurn:
    """The task's prompt, one answer, and the weighted sum of reward terms as the reward.

    `Rollout.reward_terms` holds the unweighted value of every term. Further numbers that a reward
    function returns become terms `name/key` of weight 0; sequences of numbers become step values
    `key`. A term that is None does not apply to the rollout and is left out of the sum. A rollout
    fails if a reward function raises or returns no finite number, or if no term applies. An answer
    that makes a reward function exceed a limit has the term's `answer_error_score`, and the reward
    term "answer_error" is 1 (docs/graders.md).

    Args:
        rewards: The reward terms, at least one, with distinct names.
        time_limit: Seconds that one call of a reward function may take; judges have their own.
        on_failure: Decides the result of a failed rollout: `drop_rollout`, `raise_error` or a
            `FallbackReward`.

    >>> import asyncio
    >>> from grupo.rewards import ExactMatch
    >>> env = SingleTurn((RewardTerm("correct", ExactMatch()),))
    >>> asyncio.run(env.score(Task("k", "2 + 2 =", "4"), [Rollout()]))
    [RewardResult(reward=0.0, reward_terms={'correct': 0.0}, step_values={}, error='')]
    """

    rewards: tuple[RewardTerm, ...]
    time_limit: FiniteSeconds = 10.0
    on_failure: FailureHandler = drop_rollout

    def __post_init__(self) -> None:
        names = [term.name for term in self.rewards]
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"rewards: named {names}. Allowed: at least one, no name twice.")

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return None if rollout.turns else task.prompt

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        results = await score_rollouts(self.rewards, task, rollouts, self.time_limit)
        return apply_failure_handler(task, results, self.on_failure)
