"""One question, one answer, judged by named rewards."""

from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.types import Observation, RewardResult, Rollout, Task
from grupo.envs.on_failure import FailureHandler, drop_rollout
from grupo.envs.scoring import RewardTerm, apply_failure_handler, check_time_limit, score_rollouts


@component
class SingleTurn:
    """The task's prompt, one answer, and a reward that is the weighted sum of its parts.

    A verdict's parts are the rewards as they came, before weights; further numbers that a reward
    gave are parts `name/key` of weight 0, sequences of numbers marks `key` of the actions. A part
    that says None does not apply and is left out of the sum. A rollout has failed if any part
    raised, ran out of `time_limit` seconds or gave no finite number, or if none applied; then
    `on_failure` decides.

    >>> import asyncio
    >>> from grupo.rewards import ExactMatch
    >>> world = SingleTurn((RewardTerm("right", ExactMatch()),))
    >>> asyncio.run(world.score(Task("k", "2 + 2 =", "4"), [Rollout()]))
    [RewardResult(reward=0.0, reward_terms={'right': 0.0}, step_values={}, error='')]
    """

    rewards: tuple[RewardTerm, ...]
    time_limit: float = 10.0
    on_failure: FailureHandler = drop_rollout

    def __post_init__(self) -> None:
        names = [part.name for part in self.rewards]
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"rewards: named {names}. Allowed: at least one, no name twice.")
        check_time_limit(self.time_limit)

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return None if rollout.turns else task.prompt

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        judged = await score_rollouts(self.rewards, task, rollouts, self.time_limit)
        return apply_failure_handler(task, judged, self.on_failure)
