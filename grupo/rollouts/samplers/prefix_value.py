"""The worth of beginnings of rollouts, measured by completions that are not trained on."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, score_group
from grupo.core.numbers import PositiveInt
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.cut_points import AtUnlikelyItems, CutPoints
from grupo.rollouts.samplers.prefixes import Prefix, continue_rollout, prefix_at
from grupo.rollouts.samplers.wrapper import SamplerWrapper
from grupo.util.errors import ConfigError

PREFIX_VALUE = "prefix_value"  # names of the step values
PREFIX_CUT = "prefix_cut"
StateKey = tuple[tuple[object, ...], ...]


@dataclass(frozen=True)
class _State:
    """A cut of a rollout, and what its completions depend on."""

    rollout: int
    cut: int
    prefix: Prefix

    @property
    def key(self) -> StateKey:
        """Equal for rollouts that share this beginning."""
        turns = self.prefix.rollout.turns
        return tuple((response.observation, response.items) for _, response in turns)


@component
class PrefixValue(SamplerWrapper):
    """Estimates the value of beginnings of the inner sampler's rollouts: the mean reward of
    `completions` fresh continuations of each.

    The completions are generated, and counted as generated tokens, but not returned: they are
    not trained on. Rollouts that share a beginning share its completions. Step values, both 0
    elsewhere: `prefix_cut` is 1 at the item after each measured beginning, where `prefix_value` is
    its value, that is the value of the state before the item. A beginning of which no completion
    could be scored has no cut.

    A completion inside an answer continues it with one response; later turns follow the inner
    sampler's turn strategy. A flow policy continues from the latents of the beginning; at 0 items,
    it begins with fresh noise.

    VinePPO (arXiv:2410.01679); SPO (arXiv:2505.23564).

    Args:
        inner: The sampler of the rollouts.
        at: Where rollouts are cut.
        completions: Continuations of each beginning (n in the papers).

    Raises:
        ConfigError: When it samples, if rollouts play games against one another.
    """

    at: CutPoints = AtUnlikelyItems()
    completions: PositiveInt = 9

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        states = [
            _state_at(actor, rollout, i, cut)
            for i, rollout in enumerate(group.rollouts)
            if not rollout.error and not rollout.unfinished
            for cut in self.at(rollout, actor)
        ]
        distinct = {state.key: state for state in reversed(states)}
        means = await self._values(task, env, actor, [*distinct.values()])
        values = dict(zip(distinct, means, strict=True))
        measured = [
            {s.cut: values[s.key] for s in states if s.rollout == i and not isnan(values[s.key])}
            for i in range(len(group.rollouts))
        ]
        pairs = zip(group.rollouts, measured, strict=True)
        return replace(group, rollouts=tuple(with_values(*pair) for pair in pairs))

    async def _values(
        self, task: Task, env: Env, actor: Actor, states: Sequence[_State]
    ) -> Sequence[float]:
        """The mean reward of each state's completions; NaN if none could be scored."""
        completions = await asyncio.gather(
            *(
                continue_rollout(
                    task,
                    env,
                    actor.fork("prefix", s.rollout, s.cut, k),
                    s.prefix,
                    self.turn_strategy,
                )
                for s in states
                for k in range(self.completions)
            )
        )
        if not completions:
            return []
        n = self.completions
        scored = (await score_group(task, env, completions)).rollouts
        return [_mean_reward(scored[i * n : (i + 1) * n]) for i in range(len(states))]


def _state_at(actor: Actor, rollout: Rollout, index: int, cut: int) -> _State:
    """The state of a rollout after its first `cut` items."""
    if rollout.seat is not None:
        raise ConfigError(
            "sampler: PrefixValue continues rollouts that play against one another. Allowed:"
            " rollouts of one player."
        )
    return _State(index, cut, prefix_at(actor, rollout, cut))


def with_values(rollout: Rollout, values: Mapping[int, float]) -> Rollout:
    """The rollout with the values of its beginnings, by their number of items, as step values."""
    items = range(rollout.length)
    measured = {
        PREFIX_VALUE: tuple(values.get(i, 0.0) for i in items),
        PREFIX_CUT: tuple(float(i in values) for i in items),
    }
    return replace(rollout, step_values={**rollout.step_values, **measured})


def _mean_reward(rollouts: Sequence[Rollout]) -> float:
    rewards = [rollout.reward for rollout in rollouts if not rollout.error]
    return sum(rewards) / len(rewards) if rewards else float("nan")
