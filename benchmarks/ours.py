"""A worker that takes steps of grupo: python -m benchmarks.ours WORKLOAD PRECISION."""

import time
from collections.abc import Sequence

from benchmarks.models import folder
from benchmarks.turns import Turns, asked
from benchmarks.workloads import WORKLOADS, Workload, prompts, reward, said_after
from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core.component import piece
from grupo.core.interfaces import Env
from grupo.core.types import Observation, Rollout, Task, Verdict
from grupo.envs.scoring import Part
from grupo.envs.single_turn import SingleTurn
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rollouts.curricula import Ask
from grupo.rollouts.samplers import Independent
from grupo.tasks import FromFunction
from grupo.training.learner import Learner

STEPS = 64  # of different prompts


@piece
class InOrder:
    """The next tasks as the source has them, so that both libraries read the same prompts."""

    def __call__(self, ask: Ask) -> Sequence[Task]:
        places = range(ask.history.asked, ask.history.asked + ask.wanted)
        return [] if ask.round else [ask.tasks[place % len(ask.tasks)] for place in places]


@piece
class Conversation:
    """A world that speaks before every one of a workload's turns, and judges at the end."""

    inner: SingleTurn
    workload: Workload

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        played = len(rollout.turns)
        if not played:
            return task.prompt
        more = played < self.workload.turns
        return said_after(self.workload, str(task.prompt), played) if more else None

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[Verdict]:
        return await self.inner.score(task, rollouts)


def recipe(workload: Workload, precision: str) -> Recipe:
    """The step that the workload asks for."""
    method = Method(
        curriculum=InOrder(),
        sample=Independent(workload.group),
        credit=chain(Center(), ScaleByStd(eps=1e-4)),  # the peer's
    )
    texts = prompts(workload, STEPS * workload.prompts)
    tasks = FromFunction(lambda: [Task(str(i), text) for i, text in enumerate(texts)])
    return Recipe(
        policy=CausalLM(str(folder(workload.shape)), limit=workload.new, dtype=precision),
        env=_env(workload),
        tasks=tasks,
        held_out=0,
        method=method,
        prompts=workload.prompts,
        lr=1e-6,
        steps=10_000,
    )


def _env(workload: Workload) -> Env:
    def score(completion_ids: Sequence[Sequence[int]]) -> list[float]:
        return reward(workload, completion_ids)

    one = SingleTurn((Part("score", score),), time_limit=60.0)
    return one if workload.turns == 1 else Conversation(one, workload)


def main() -> None:
    """Load, then one step for each line that is read."""
    turns, (name, precision) = Turns(), asked()
    learner = Learner(recipe(WORKLOADS[name], precision))
    turns.ready("grupo", "torch", "transformers")
    while True:
        turns.wait()
        began = time.perf_counter()
        numbers = learner.step().numbers
        seconds = time.perf_counter() - began
        sample = numbers["time/sample"] + numbers["time/judge"]
        turns.say(
            seconds=seconds,
            sample=sample,
            update=seconds - sample,
            tokens=numbers["tokens/sampled"],
            signal=numbers["groups/signal"],
        )


if __name__ == "__main__":
    main()
