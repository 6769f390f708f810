"""Chosen starts: answers that begin with one of several texts, drawn with given probabilities."""

import asyncio
from collections.abc import Sequence
from math import isfinite

from grupo.core.component import check_field, component
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.ranges import NonEmptyString
from grupo.core.requires import Provides, Requires
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.independent import GroupSampler
from grupo.rollouts.samplers.wrapper import SamplerWrapper
from grupo.util.errors import ConfigError


@component
class ChosenStart(GroupSampler):
    """Independent rollouts whose first answer begins with a text that is drawn and trained on.

    Each text is drawn with its given probability, whatever the policy prefers. The ratio of the
    text is pi(text) / probability, so that the policy learns which text to begin with. The reward
    term `reward_term` is the index of the drawn text among `starts`, from 0.

    AdaptThink, Zhang et al. (arXiv:2505.13417).

    Args:
        group_size: Number of rollouts in a group.
        turn_strategy: Generates the response to one observation, after the drawn text.
        starts: Each text with its probability; their sum is 1.
        reward_term: Name of the reward term.
    """

    starts: tuple[tuple[NonEmptyString, float], ...] = (("</think>", 0.5), ("<think>", 0.5))
    reward_term: NonEmptyString = "start"

    @property
    def provides(self) -> Provides:
        return Provides(reward_terms=(self.reward_term,))

    def __post_init__(self) -> None:
        total = sum(probability for _, probability in self.starts)
        are_probabilities = abs(total - 1) < 1e-6 and all(p >= 0 for _, p in self.starts)
        are_distinct = len(dict(self.starts)) == len(self.starts)
        allowed = "different texts with probabilities whose sum is 1"
        check_field(self, "starts", are_probabilities and are_distinct, allowed)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        count = task.group_size or self.group_size
        rollouts = await asyncio.gather(
            *(self._generate(task, env, actor.fork(i)) for i in range(count))
        )
        group = await score_group(task, env, rollouts)
        return group.with_rollouts(map(self._annotate, group.rollouts))

    async def _generate(self, task: Task, env: Env, actor: Actor) -> Rollout:
        observation = await initial_observation(task, env)
        start = await actor.choose(Rollout(), observation, dict(self.starts))
        rollout = Rollout().append_turn(observation, start)
        rollout = await self.turn_strategy(actor, rollout, "")
        return await run_rollout(task, env, actor, rollout, self.turn_strategy)

    def _annotate(self, rollout: Rollout) -> Rollout:
        texts = [text for text, _ in self.starts]
        index = texts.index(rollout.turns[0][1].text)
        return rollout.with_reward_terms({self.reward_term: float(index)})


@component
class WithColumnTerm(SamplerWrapper):
    """Adds a reward term to every rollout of a group: a number from a column of the task.

    An example is the pass rate of the model before training, which `grupo survey` measures.

    Args:
        inner: The sampler of the group.
        column: Column of the number.
        reward_term: Name of the reward term.

    Raises:
        ConfigError: A task has no number in that column. Raised before the run, and by a call with
            such a task.
    """

    column: str = "pass_rate"
    reward_term: NonEmptyString = "reference"

    @property
    def requires(self) -> Requires:
        return Requires(columns=(self.column,))

    @property
    def provides(self) -> Provides:
        return Provides(reward_terms=(self.reward_term,))

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without a number in the column."""
        for task in tasks:
            value = task.columns.get(self.column)
            if not isinstance(value, int | float) or not isfinite(value):
                raise ConfigError(
                    f"tasks: column {self.column!r} of {task.location or task.key} is {value!r}."
                    " Allowed: a finite number, such as the pass rate that `grupo survey` writes."
                )

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        self.validate_tasks([task])
        group = await self.inner(task, env, actor)
        term = {self.reward_term: float(task.columns[self.column])}
        return group.with_rollouts(rollout.with_reward_terms(term) for rollout in group.rollouts)
