"""How rollouts come about: a policy acts, a world replies and judges."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple, Protocol

from grupo.core.types import Action, Group, Observation, RewardResult, Rollout, Task


class TokenScores(NamedTuple):
    """Of each part of an action how likely it is, and the entropy of what it could have been.

    In nats, of which the entropy is at most `most`.
    """

    logp: tuple[float, ...] = ()
    entropy: tuple[float, ...] = ()
    max_entropy: float = 0.0


class Actor(Protocol):
    """All that a sampler knows of the policy: it acts, recites, and splits into random streams."""

    async def __call__(self, rollout: Rollout, observation: Observation) -> Action:
        """Go on with `rollout` after the world said `seen`."""
        ...

    async def restart_context(
        self,
        rollout: Rollout,
        observation: Observation,
        suffix_tokens: int = 0,
        prefix_tokens: int = 0,
    ) -> Action:
        """Go on having read `seen` and of what was said the first `head` and last `carried` parts.

        Nothing else is read; nothing is read twice.
        """
        ...

    async def append_unsampled(
        self, rollout: Rollout, observation: Observation, text: str
    ) -> Action:
        """Say `text` as if the policy had: its parts, not sampled."""
        ...

    async def prefill_forced(self, rollout: Rollout, observation: Observation, text: str) -> Action:
        """Put `text` in the policy's mouth, for it to go on from: neither sampled nor learned."""
        ...

    async def score(self, rollout: Rollout) -> TokenScores:
        """Say how likely its last action is where it stands, whoever said it; nothing is drawn.

        What is more than the policy can read is not measured.
        """
        ...

    def truncate(self, rollout: Rollout, num_items: int) -> Rollout:
        """The rollout as if its last action had ended after so many parts."""
        ...

    def with_prompt(self, rollout: Rollout, prompt: Observation) -> Rollout:
        """The rollout as if `seen` had been its prompt; its actions were drawn after another."""
        ...

    async def predict_head(self, rollout: Rollout, head: str) -> float:
        """What the helper of that name says of the state that the rollout is in."""
        ...

    def fork(self, *label: object) -> "Actor":
        """The same policy with a random stream of its own, named by `label`."""
        ...

    def rng(self, *label: object) -> Random:
        """Random numbers for choices of the sampler's, of a stream named by `label`."""
        ...

    def with_sampling(self, temperature: float = 1.0, top_k: int = 0) -> "Actor":
        """The same policy, `temperature` times as hot, of its `top_k` likeliest; 1 is greedy."""
        ...

    def with_stop(self, *stop_strings: str, max_new_tokens: int = 0) -> "Actor":
        """The same policy, which also ends where it has said `stop` or `limit` parts; 0: no limit.

        What it said before does not count.
        """
        ...


class Env(Protocol):
    """The world: what it says next, None when it is over, and what rollouts are worth."""

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None: ...

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]: ...


class TurnStrategy(Protocol):
    """How the policy takes its turn: the rollout after it, one action longer or several."""

    async def __call__(
        self, actor: Actor, rollout: Rollout, observation: Observation, /
    ) -> Rollout: ...


async def single_action(actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
    """Whatever the policy says until it ends."""
    return rollout.append_turn(observation, await actor(rollout, observation))


async def run_rollout(
    task: Task,
    env: Env,
    actor: Actor,
    rollout: Rollout = Rollout(),
    turn_strategy: TurnStrategy = single_action,
) -> Rollout:
    """Go on with a rollout until the world says it is over."""
    while (seen := await env.reply(task, rollout)) is not None:
        rollout = await turn_strategy(actor, rollout, seen)
    return rollout


async def initial_observation(task: Task, env: Env) -> Observation:
    """What the world says first."""
    seen = await env.reply(task, Rollout())
    assert seen is not None, "a world that says nothing cannot be answered"
    return seen


async def score_group(task: Task, env: Env, rollouts: Sequence[Rollout]) -> Group:
    """The group that these rollouts make once judged, those that could not be included."""
    verdicts = await env.score(task, rollouts)
    judged = (
        replace(
            r,
            reward=v.reward,
            reward_terms=v.reward_terms,
            step_values=v.step_values,
            error=v.error,
        )
        for r, v in zip(rollouts, verdicts, strict=True)
    )
    return Group(task, tuple(judged))
