"""One question, one answer, judged by named rewards."""

from collections.abc import Sequence

from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.types import Observation, Rollout, Task, Verdict
from grupo.envs.on_failure import OnFailure, drop
from grupo.envs.scoring import Part, check_time, judge, settled


@piece
class SingleTurn:
    """The task's prompt, one answer, and a reward that is the weighted sum of its parts.

    A verdict's parts are the rewards as they came, before weights; further numbers that a reward
    gave are parts `name/key` of weight 0, sequences of numbers marks `key` of the actions. A part
    that says None does not apply and is left out of the sum. A rollout has failed if any part
    raised, ran out of `time_limit` seconds or gave no finite number, or if none applied; then
    `on_failure` decides.

    >>> import asyncio
    >>> from grupo.rewards import Exact
    >>> world = SingleTurn((Part("right", Exact()),))
    >>> asyncio.run(world.score(Task("k", "2 + 2 =", "4"), [Rollout()]))
    [Verdict(reward=0.0, parts={'right': 0.0}, marks={}, failed='')]
    """

    rewards: tuple[Part, ...]
    time_limit: float = 10.0
    on_failure: OnFailure = drop

    def __post_init__(self) -> None:
        names = [part.name for part in self.rewards]
        if not names or len(set(names)) < len(names):
            raise Refused(f"rewards: named {names}. Allowed: at least one, no name twice.")
        check_time(self.time_limit)

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return None if rollout.turns else task.prompt

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[Verdict]:
        judged = await judge(self.rewards, task, rollouts, self.time_limit)
        return settled(task, judged, self.on_failure)
