"""A worker that runs steps of grupo: python -m benchmarks.grupo_worker WORKLOAD PRECISION."""

import time
from collections.abc import Sequence

from benchmarks.models import model_folder
from benchmarks.turns import WorkerChannel, worker_arguments
from benchmarks.workloads import WORKLOADS, Workload, random_prompts, reward, turn_text
from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core.component import component
from grupo.core.interfaces import Env
from grupo.core.types import Observation, RewardResult, Rollout, Task
from grupo.envs.reward_term import RewardTerm
from grupo.envs.single_turn import SingleTurn
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.models.lora import Lora
from grupo.recipe import Recipe
from grupo.rollouts.curricula import CurriculumRequest
from grupo.rollouts.samplers import GroupSampler
from grupo.tasks import FromFunction
from grupo.training.learner import Learner

STEPS = 64  # steps with different prompts


@component
class SequentialTasks:
    """Selects tasks in the order of their source, so that both libraries get the same prompts."""

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        if request.round_index:
            return []
        first = request.history.num_tasks_drawn
        indices = range(first, first + request.num_tasks)
        return [request.tasks[index % len(request.tasks)] for index in indices]


@component
class ConversationEnv:
    """An environment with an observation before each turn and a reward at the end.

    Args:
        inner: the environment that scores.
        workload: the number of turns and the lengths of observations.
    """

    inner: SingleTurn
    workload: Workload

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        turn = len(rollout.turns)
        if not turn:
            return task.prompt
        if turn == self.workload.turns:
            return None
        return turn_text(self.workload, str(task.prompt), turn)

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        return await self.inner.score(task, rollouts)


def recipe(workload: Workload, precision: str) -> Recipe:
    """Return the recipe of a workload."""
    method = Method(
        curriculum=SequentialTasks(),
        sampler=GroupSampler(workload.group_size),
        advantage=chain(Center(), ScaleByStd(eps=1e-4)),  # TRL's
    )
    texts = random_prompts(workload, STEPS * workload.prompts)
    tasks = FromFunction(lambda: [Task(str(i), text) for i, text in enumerate(texts)])
    return Recipe(
        policy=CausalLM(
            str(model_folder(workload.shape)),
            max_new_tokens=workload.max_new_tokens,
            dtype=precision,
            lora=Lora(workload.lora_rank) if workload.lora_rank else None,
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

    env = SingleTurn((RewardTerm("score", score),), time_limit=60.0)
    return env if workload.turns == 1 else ConversationEnv(env, workload)


def main() -> None:
    """Load the model, then run a step per request."""
    channel = WorkerChannel()
    name, precision = worker_arguments()
    learner = Learner(recipe(WORKLOADS[name], precision))
    channel.ready("grupo", "torch", "transformers")
    while True:
        channel.wait()
        start = time.perf_counter()
        metrics = learner.step().metrics
        seconds = time.perf_counter() - start
        sample = metrics["time/generate"] + metrics["time/score"]
        channel.send(
            seconds=seconds,
            sample=sample,
            update=seconds - sample,
            tokens=metrics["tokens/generated"],
            signal=metrics["groups/nonzero_std_frac"],
        )


if __name__ == "__main__":
    main()
