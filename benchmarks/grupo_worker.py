"""A worker that takes steps of grupo: python -m benchmarks.ours WORKLOAD PRECISION."""

import time
from collections.abc import Sequence

from benchmarks.models import model_folder
from benchmarks.turns import WorkerChannel, worker_arguments
from benchmarks.workloads import WORKLOADS, Workload, random_prompts, reward, turn_text
from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core.component import component
from grupo.core.interfaces import Env
from grupo.core.types import Observation, RewardResult, Rollout, Task
from grupo.envs.scoring import RewardTerm
from grupo.envs.single_turn import SingleTurn
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rollouts.curricula import CurriculumRequest
from grupo.rollouts.samplers import GroupSampler
from grupo.tasks import FromFunction
from grupo.training.learner import Learner

STEPS = 64  # of different prompts


@component
class SequentialTasks:
    """The next tasks as the source has them, so that both libraries read the same prompts."""

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        places = range(request.history.tasks_drawn, request.history.tasks_drawn + request.num_tasks)
        return (
            []
            if request.resample_round
            else [request.tasks[place % len(request.tasks)] for place in places]
        )


@component
class ConversationEnv:
    """A world that speaks before every one of a workload's turns, and judges at the end."""

    inner: SingleTurn
    workload: Workload

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        played = len(rollout.turns)
        if not played:
            return task.prompt
        more = played < self.workload.turns
        return turn_text(self.workload, str(task.prompt), played) if more else None

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        return await self.inner.score(task, rollouts)


def recipe(workload: Workload, precision: str) -> Recipe:
    """The step that the workload asks for."""
    method = Method(
        curriculum=SequentialTasks(),
        sampler=GroupSampler(workload.group_size),
        advantage=chain(Center(), ScaleByStd(eps=1e-4)),  # the peer's
    )
    texts = random_prompts(workload, STEPS * workload.prompts)
    tasks = FromFunction(lambda: [Task(str(i), text) for i, text in enumerate(texts)])
    return Recipe(
        policy=CausalLM(
            str(model_folder(workload.shape)),
            max_new_tokens=workload.max_new_tokens,
            dtype=precision,
        ),
        env=_build_env(workload),
        tasks=tasks,
        eval_tasks=0,
        method=method,
        prompts_per_step=workload.prompts,
        learning_rate=1e-6,
        max_steps=10_000,
    )


def _build_env(workload: Workload) -> Env:
    def score(completion_ids: Sequence[Sequence[int]]) -> list[float]:
        return reward(workload, completion_ids)

    one = SingleTurn((RewardTerm("score", score),), time_limit=60.0)
    return one if workload.turns == 1 else ConversationEnv(one, workload)


def main() -> None:
    """Load, then one step for each line that is read."""
    turns, (name, precision) = WorkerChannel(), worker_arguments()
    learner = Learner(recipe(WORKLOADS[name], precision))
    turns.ready("grupo", "torch", "transformers")
    while True:
        turns.wait()
        began = time.perf_counter()
        numbers = learner.step().metrics
        seconds = time.perf_counter() - began
        sample = numbers["time/generate"] + numbers["time/score"]
        turns.send(
            seconds=seconds,
            sample=sample,
            update=seconds - sample,
            tokens=numbers["tokens/generated"],
            signal=numbers["groups/nonzero_std_frac"],
        )


if __name__ == "__main__":
    main()
