"""An environment of verifiers as an `Env`, and its data set as tasks."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grupo.core.component import component
from grupo.core.interfaces import Env
from grupo.core.pending_env_steps import pending_env_step
from grupo.core.ranges import FiniteSeconds, PositiveInt
from grupo.core.types import RewardResult, Rollout, Task
from grupo.envs.multi_turn import MultiTurn, MultiTurnSessions, reward_result
from grupo.envs.on_failure import FailureHandler, drop_rollout
from grupo.envs.reward_parsing import finite_float, weighted_reward
from grupo.envs.scoring import apply_failure_handler
from grupo.envs.session_cache import turn_texts
from grupo.envs.session_steps import SessionState
from grupo.envs.timeouts import MAX_CONCURRENT, CallFailure, call_with_timeout
from grupo.envs.verifiers.loading import EnvArgs, load_verifiers_env
from grupo.envs.verifiers.rubric import reward_errors
from grupo.envs.verifiers.session import VerifiersSession
from grupo.tasks.base import LazyTasks, task_key
from grupo.util.errors import ConfigError
from grupo.util.loader_errors import loader_errors

NO_LIMIT = 1_000_000  # turns, where the environment's own limit decides
GRACE_SECONDS = 1.0  # by which a step ends its coroutine before the thread is abandoned


@component
class Verifiers:
    """An environment of verifiers, by the name that `verifiers.load_environment` takes.

    Its `env_response` and stop conditions make the turns, and its rubric the reward. Each reward
    function and metric of the rubric is a reward term; a rollout fails if one of them raises. Its
    tools are described in the prompt and called as those of `Toolbox`.

    Args:
        env_id: Name of the environment, whose module is installed or in the current folder.
        args: Pairs of an argument of its `load_environment` and its value.
        max_turns: Turns after which a rollout ends if the environment's own limit is larger.
        time_limit: Seconds that a step, or the rubric for a group, may take.
        max_concurrent: Sessions that are stepped at the same time.
        on_failure: Decides the result of a rollout whose environment or rubric raised or hung.
    """

    env_id: str
    args: EnvArgs = ()
    max_turns: PositiveInt = NO_LIMIT
    time_limit: FiniteSeconds = 60.0
    max_concurrent: PositiveInt = MAX_CONCURRENT
    on_failure: FailureHandler = drop_rollout

    def check(self) -> None:
        """Raises `ConfigError` if the environment cannot be loaded."""
        load_verifiers_env(self.env_id, self.args)

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task that is no row of a data set of verifiers."""
        for task in tasks:
            if "row" not in task.columns:
                raise ConfigError(
                    f"tasks: {task.key!r} is no row of {self.env_id}. Leave --tasks out."
                )

    def open(self) -> Env:
        """The environment with its sessions, for use in one event loop."""
        config = MultiTurn(
            self.session,
            max_turns=self.max_turns,
            time_limit=self.time_limit + GRACE_SECONDS,
            max_concurrent=self.max_concurrent,
            on_failure=self.on_failure,
        )
        return VerifiersSessions(config, config.session_cache())

    def session(self) -> VerifiersSession:
        """A session that has not been reset."""
        return VerifiersSession(load_verifiers_env(self.env_id, self.args), self.time_limit)


@dataclass(frozen=True)
class VerifiersSessions(MultiTurnSessions):
    """A `Verifiers` environment in use; the rubric scores the rollouts of a group together."""

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        states = await asyncio.gather(*(self._state(task, rollout) for rollout in rollouts))
        scores = await self._scores(task, rollouts, states)
        results = map(reward_result, rollouts, states, scores)
        return apply_failure_handler(task, results, self.config.on_failure)

    async def _scores(
        self, task: Task, rollouts: Sequence[Rollout], states: Sequence[SessionState]
    ) -> Sequence[RewardResult]:
        """The rubric's result of each rollout; those whose environment failed are left out."""
        scored = [i for i, state in enumerate(states) if not state.error]
        texts = [turn_texts(rollouts[i]) for i in scored]

        def score() -> Sequence[RewardResult]:
            sessions: Any = [
                self.session_cache.copy_env(task, t, states[i])
                for i, t in zip(scored, texts, strict=True)
            ]
            sessions[0].score_with(sessions)
            return [_result(session.state) for session in sessions]

        results = [RewardResult(0.0)] * len(rollouts)
        if not scored:
            return results
        with pending_env_step():
            outcome = await call_with_timeout(score, self.config.time_limit)
        if isinstance(outcome, CallFailure):
            outcome = [RewardResult(error=f"the rubric {outcome.reason}")] * len(scored)
        for i, result in zip(scored, outcome, strict=True):
            results[i] = result
        return results


def _result(state: Any) -> RewardResult:
    """The reward and metrics of a scored state, or the errors of its reward functions."""
    if errors := reward_errors(state):
        return RewardResult(error="; ".join(errors))
    terms = {name: finite_float(value) for name, value in state["metrics"].items()}
    return RewardResult(weighted_reward(finite_float(state["reward"])), terms)


@component
class VerifiersTasks:
    """The data set of an environment of verifiers as tasks.

    Args:
        env: The environment.
        eval_split: Whether the tasks are those of the environment's evaluation data set.
    """

    env: Verifiers
    eval_split: bool = False

    def load(self) -> Sequence[Task]:
        """The tasks; the reference answer is the row's `answer`, the column `row` the row."""
        env = load_verifiers_env(self.env.env_id, self.env.args)
        with loader_errors(f"tasks: {self.env.env_id}"):
            dataset = env.get_eval_dataset() if self.eval_split else env.get_dataset()
        name = self.env.env_id

        def make_task(index: int) -> Task:
            row = dataset[index]
            prompt = tuple(map(dict, row["prompt"]))
            return Task(task_key(prompt), prompt, row.get("answer"), name, {"row": row})

        return LazyTasks(len(dataset), make_task)
