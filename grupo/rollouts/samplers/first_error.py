"""Values of beginnings of wrong rollouts: a binary search for the first wrong step of each."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, score_group
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.cut_points import AfterText, CutPoints
from grupo.rollouts.samplers.prefix_value import with_values
from grupo.rollouts.samplers.prefixes import continue_rollout, prefix_at
from grupo.rollouts.samplers.wrapper import SamplerWrapper
from grupo.util.errors import ConfigError


@dataclass(eq=False)
class SearchState:
    """A beginning of rollouts from which some completions are right and others wrong.

    Args:
        items: Number of its items.
        value: Share of its completions that are right.
        visits: Number of searches that started from it.
    """

    items: int
    value: float
    visits: int = 0


@dataclass(eq=False)
class _Candidate:
    """A wrong rollout through a state, and the values that were measured on it."""

    state: SearchState
    rollout: Rollout
    values: dict[int, float] = field(default_factory=dict)


@component
class FirstErrorSearch(SamplerWrapper):
    """Estimates the values of beginnings of wrong rollouts, and finds their first wrong steps.

    A rollout is right if its reward is above 0. The value of a beginning is the share of right ones
    among `completions` continuations of it. A search starts from a beginning of a wrong rollout
    with a value above 0, and halves the steps behind it: a value above 0 in the middle moves the
    search behind the middle, a value of 0 before it. Wrong continuations of a beginning with a
    value above 0 are searched later. Each search takes the pair of a beginning s and a wrong
    rollout r behind it with the largest

      alpha^(1 - value(s)) beta^(length(r) / max_length)
        + exploration sqrt(sum of all visits) / (1 + visits(s)).

    The searched continuations join the inner sampler's group. Two step values are set at the item
    after each measured beginning: `prefix_cut` is 1, and `prefix_value` is the value. Both are 0 at
    other items. A task whose rollouts are all right or all wrong has no search.

    Source: OmegaPRM, Luo et al., arXiv:2406.06592, section 3.

    Args:
        inner: The sampler of the first rollouts.
        at: Chooses the ends of steps.
        completions: Number of continuations of each beginning (paper: 8).
        searches: Largest number of searches of a task (paper: 100).
        alpha: Base of the share of wrong completions (paper: 0.5).
        beta: Base of the length (paper: 0.9).
        max_length: Items of a rollout that count as length 1 (paper: 500).
        exploration: Weight of states that were visited rarely (paper: 0.125).

    Raises:
        ConfigError: During sampling, if the rollouts of the inner sampler play against one another.
    """

    at: CutPoints = AfterText()
    completions: PositiveInt = 8
    searches: PositiveInt = 8
    alpha: Fraction = 0.5
    beta: Fraction = 0.9
    max_length: PositiveInt = 500
    exploration: NonNegative = 0.125

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        _refuse_games(group.rollouts)
        waiting = _candidates(0, [r for r in group.rollouts if not r.unfinished])
        searched = list[_Candidate]()
        states = list[SearchState]()
        for number in range(self.searches):
            if not waiting:
                break
            chosen = max(waiting, key=lambda candidate: self._priority(candidate, states))
            waiting.remove(chosen)
            states += [] if chosen.state in states else [chosen.state]
            chosen.state.visits += 1
            searched.append(chosen)
            waiting += await self._search(task, env, actor.fork("search", number), chosen)
        return _labelled(group, searched)

    def utility(self, value: float, length: int) -> float:
        """alpha^(1 - value) beta^(length / max_length): large for short, nearly right rollouts.

        >>> from grupo.rollouts.samplers import GroupSampler
        >>> round(FirstErrorSearch(GroupSampler(2)).utility(0.5, 250), 4)
        0.6708
        """
        return self.alpha ** (1 - value) * self.beta ** (length / self.max_length)

    def _priority(self, candidate: _Candidate, states: Sequence[SearchState]) -> float:
        state = candidate.state
        visits = sum(other.visits for other in states)
        bonus = self.exploration * sqrt(visits) / (1 + state.visits)
        return self.utility(state.value, candidate.rollout.length - state.items) + bonus

    async def _search(
        self, task: Task, env: Env, actor: Actor, candidate: _Candidate
    ) -> list[_Candidate]:
        """Measure the beginnings that the search visits; returns the wrong rollouts behind them."""
        rollout, start = candidate.rollout, candidate.state.items
        ends = [start, *(cut for cut in self.at(rollout, actor) if cut > start), rollout.length]
        found = list[_Candidate]()
        right, wrong = 0, len(ends) - 1  # indices of a beginning with a value above 0, and of 0
        while wrong - right > 1:
            middle = (right + wrong) // 2
            completed = await self._complete(task, env, actor, rollout, ends[middle])
            if not completed:
                break
            value = candidate.values[ends[middle]] = _share_right(completed)
            found += _candidates(ends[middle], completed)
            right, wrong = (middle, wrong) if value > 0 else (right, middle)
        return found

    async def _complete(
        self, task: Task, env: Env, actor: Actor, rollout: Rollout, cut: int
    ) -> Sequence[Rollout]:
        """The continuations of a beginning that could be scored."""
        prefix = prefix_at(actor, rollout, cut)
        forks = (actor.fork("prefix", cut, i) for i in range(self.completions))
        continued = await asyncio.gather(
            *(continue_rollout(task, env, fork, prefix, self.turn_strategy) for fork in forks)
        )
        scored = (await score_group(task, env, continued)).rollouts
        return [rollout for rollout in scored if not rollout.error]


def _share_right(rollouts: Sequence[Rollout]) -> float:
    return sum(rollout.reward > 0 for rollout in rollouts) / len(rollouts)


def _candidates(items: int, rollouts: Sequence[Rollout]) -> list[_Candidate]:
    """The wrong rollouts through a state after `items` items; none if all are right, or wrong."""
    scored = [rollout for rollout in rollouts if not rollout.error]
    value = _share_right(scored) if scored else 0.0
    state = SearchState(items, value)
    return [_Candidate(state, r) for r in scored if value > 0 and r.reward <= 0]


def _labelled(group: Group, searched: Sequence[_Candidate]) -> Group:
    """The group with the measured values, and the searched continuations."""
    own = {id(candidate.rollout): candidate for candidate in searched}
    first = [_with_labels(own.pop(id(rollout), None), rollout) for rollout in group.rollouts]
    return group.with_rollouts([*first, *(_with_labels(c, c.rollout) for c in own.values())])


def _with_labels(candidate: _Candidate | None, rollout: Rollout) -> Rollout:
    return with_values(rollout, candidate.values if candidate else {})


def _refuse_games(rollouts: Sequence[Rollout]) -> None:
    if any(rollout.seat is not None for rollout in rollouts):
        raise ConfigError(
            "sampler: FirstErrorSearch continues rollouts that play against one another. Allowed:"
            " rollouts of one player."
        )
