"""Values of beginnings of rollouts, measured by completions that are not trained on."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    """The state of a rollout after its first items, from which completions are generated."""

    rollout_index: int
    cut: int  # number of items before the cut
    prefix: Prefix

    @property
    def key(self) -> StateKey:
        """Identifies the state: rollouts that share this beginning have the same key."""
        turns = self.prefix.rollout.turns
        return tuple((response.observation, response.items) for _, response in turns)


@component
class PrefixValue(SamplerWrapper):
    """Estimates the values of beginnings of the inner sampler's rollouts.

    The value of a beginning is the mean reward of `completions` new continuations of it. Their
    tokens are counted as generated, but they do not join the group. Rollouts that share a beginning
    share its completions. Two step values are set at the item after each measured beginning:
    `prefix_cut` is 1, and `prefix_value` is the value of the beginning. Both are 0 at other items.
    If no completion could be scored, the beginning counts as not measured.

    If a beginning ends inside an answer, a completion continues the answer with one response. Later
    turns follow the inner sampler's turn strategy. A flow policy continues from the latents of the
    beginning, or from new noise if the beginning has no items.

    VinePPO (arXiv:2410.01679); SPO (arXiv:2505.23564).

    Args:
        inner: The sampler of the rollouts.
        at: Chooses where rollouts are cut.
        completions: Number of continuations of each beginning (n in the papers).

    Raises:
        ConfigError: During sampling, if the rollouts of the inner sampler play against one another.
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
        first_by_key = {state.key: state for state in reversed(states)}
        means = await self._values(task, env, actor, [*first_by_key.values()])
        value_of_key = dict(zip(first_by_key, means, strict=True))
        values_by_cut: list[dict[int, float]] = [{} for _ in group.rollouts]
        for state in states:
            if not isnan(value := value_of_key[state.key]):
                values_by_cut[state.rollout_index][state.cut] = value
        pairs = zip(group.rollouts, values_by_cut, strict=True)
        return group.with_rollouts(with_values(*pair) for pair in pairs)

    async def _values(
        self, task: Task, env: Env, actor: Actor, states: Sequence[_State]
    ) -> Sequence[float]:
        """The mean reward of each state's completions; NaN if none could be scored."""
        completions = await asyncio.gather(
            *(
                continue_rollout(
                    task,
                    env,
                    actor.fork("prefix", state.rollout_index, state.cut, i),
                    state.prefix,
                    self.turn_strategy,
                )
                for state in states
                for i in range(self.completions)
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
    """The rollout with values of its beginnings, by their numbers of items, as step values."""
    items = range(rollout.length)
    value_of_item = tuple(values.get(i, 0.0) for i in items)
    is_cut = tuple(float(i in values) for i in items)
    return rollout.with_step_values({PREFIX_VALUE: value_of_item, PREFIX_CUT: is_cut})


def _mean_reward(rollouts: Sequence[Rollout]) -> float:
    """The mean reward of the rollouts that could be scored; NaN if there are none."""
    rewards = [rollout.reward for rollout in rollouts if not rollout.error]
    return sum(rewards) / len(rewards) if rewards else float("nan")
