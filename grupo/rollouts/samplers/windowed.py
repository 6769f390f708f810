"""Windowed sampling: each step adds a limited number of tokens to a rollout, over several steps."""

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
    """Independent rollouts, to which each step adds at most `window` tokens.

    If a task has unfinished rollouts, its group consists of these rollouts, continued. If it has
    none, its group is new. The reward term `cut` is 1 for a rollout that is still unfinished, else
    0. An unfinished rollout is not scored, and its reward is 0. Responses of earlier steps are
    marked as `off_context` and keep their log-probabilities. A rollout also ends at `max_length`,
    which takes the place of the policy's `max_new_tokens`.

    T-PPO, Fan et al. (arXiv:2506.15050).

    Args:
        group_size: Number of rollouts in a new group.
        window: Largest number of tokens that a step adds to a rollout.
        max_length: Largest number of tokens of a rollout, in all steps together.

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
        new_rollouts = (Rollout(),) * (task.group_size or self.group_size)
        rollouts = await asyncio.gather(
            *(
                self._continue(task, env, actor.fork(i), rollout)
                for i, rollout in enumerate(task.unfinished_rollouts or new_rollouts)
            )
        )
        finished = [rollout for rollout in rollouts if not rollout.unfinished]
        # in the order of `rollouts`
        scored = iter((await score_group(task, env, finished)).rollouts if finished else ())
        annotated = (
            replace(rollout, reward=0.0, reward_terms={CUT: 1.0})
            if rollout.unfinished
            else next(scored).with_reward_terms({CUT: 0.0})
            for rollout in rollouts
        )
        return Group(task, tuple(annotated))

    async def _continue(self, task: Task, env: Env, actor: Actor, rollout: Rollout) -> Rollout:
        """The rollout after one more window."""
        max_length = min(rollout.length + self.window, self.max_length)
        rollout = _marked_as_earlier(rollout)
        while rollout.length < max_length:
            # "" continues a response that the window has cut off
            observation = "" if rollout.truncated else await env.reply(task, rollout)
            if observation is None:
                return rollout
            limited_actor = actor.with_stop(max_new_tokens=max_length - rollout.length)
            response = await limited_actor(rollout, observation)
            if not response.items and rollout.turns:  # the context has no room left
                return rollout
            rollout = rollout.append_turn(observation, response)
        can_continue = rollout.truncated or await env.reply(task, rollout) is not None
        return replace(rollout, unfinished=can_continue and rollout.length < self.max_length)


def _marked_as_earlier(rollout: Rollout) -> Rollout:
    """The rollout with its responses marked as responses of an earlier step."""
    turns = [(o, replace(response, off_context=True)) for o, response in rollout.turns]
    return replace(rollout, turns=tuple(turns), unfinished=False)
