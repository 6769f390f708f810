"""Windows: answers that are cut after so many tokens and continued in a later step."""

import asyncio
from dataclasses import replace

from grupo.core.component import check_field, component
from grupo.core.interfaces import Actor, Env, score_group
from grupo.core.numbers import PositiveInt
from grupo.core.requires import Provides, Requires
from grupo.core.types import Group, Rollout, Task
from grupo.core.units import Tokens

CUT = "cut"  # name of the reward term


@component
class WindowSampler:
    """Independent rollouts of at most `window` new tokens; those that are cut are continued later.

    The group of a task with unfinished rollouts consists of these rollouts, continued; another task
    gets a new group. The reward term `cut` is 1 for a rollout that is still unfinished: it is not
    scored, and its reward is 0. Responses of earlier steps are marked as `off_context` and keep
    their log-probabilities. A rollout ends like any other or at `max_length`, which takes the place
    of the policy's `max_new_tokens`.

    T-PPO, Fan et al. (arXiv:2506.15050).

    Args:
        group_size: Rollouts in a new group.
        window: Most tokens that a rollout gets in one step.
        max_length: Most tokens of a rollout, in all steps together.

    Raises:
        ConfigError: The window is longer than `max_length`.
    """

    group_size: PositiveInt = 8
    window: Tokens = 8192
    max_length: PositiveInt = 24576

    requires = Requires(unfinished_rollouts=True)
    provides = Provides(reward_terms=(CUT,))

    def __post_init__(self) -> None:
        allowed = f"at most max_length, {self.max_length}"
        check_field(self, "window", self.window <= self.max_length, allowed)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        new = (Rollout(),) * (task.group_size or self.group_size)
        rollouts = await asyncio.gather(
            *(
                self._continue(task, env, actor.fork(i), rollout)
                for i, rollout in enumerate(task.unfinished_rollouts or new)
            )
        )
        finished = [rollout for rollout in rollouts if not rollout.unfinished]
        scored = iter((await score_group(task, env, finished)).rollouts if finished else ())
        return Group(
            task,
            tuple(
                replace(rollout, reward=0.0, reward_terms={CUT: 1.0})
                if rollout.unfinished
                else _with_cut_term(next(scored))
                for rollout in rollouts
            ),
        )

    async def _continue(self, task: Task, env: Env, actor: Actor, rollout: Rollout) -> Rollout:
        """The rollout after one more window."""
        limit = min(rollout.length + self.window, self.max_length)
        rollout = _from_earlier_step(rollout)
        while rollout.length < limit:
            observation = "" if rollout.truncated else await env.reply(task, rollout)
            if observation is None:
                return rollout
            generate = actor.with_stop(max_new_tokens=limit - rollout.length)
            response = await generate(rollout, observation)
            if not response.items and rollout.turns:  # the context has no room left
                return rollout
            rollout = rollout.append_turn(observation, response)
        is_open = rollout.truncated or await env.reply(task, rollout) is not None
        return replace(rollout, unfinished=is_open and rollout.length < self.max_length)


def _from_earlier_step(rollout: Rollout) -> Rollout:
    """The rollout with its responses marked as those of an earlier step."""
    turns = [(o, replace(response, off_context=True)) for o, response in rollout.turns]
    return replace(rollout, turns=tuple(turns), unfinished=False)


def _with_cut_term(rollout: Rollout) -> Rollout:
    return replace(rollout, reward_terms={**rollout.reward_terms, CUT: 0.0})
