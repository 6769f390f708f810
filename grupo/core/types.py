"""What happens before a batch: tasks, actions, rollouts, groups."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

Message = Mapping[str, Any]  # {"role": ..., "content": ...}
Observation = str | tuple[Message, ...]  # what the world says: plain text, or messages of a chat


@dataclass(frozen=True)
class Task:
    """What is asked, and what it takes to judge an answer."""

    key: str  # the same question has the same key, wherever it came from
    prompt: Observation
    reference_answer: Any = None
    source: str = ""  # which family or file it is from
    columns: Mapping[str, Any] = field(
        default_factory=dict
    )  # the rest of its row, as reward functions read it
    group_size: int = (
        0  # how many rollouts the curriculum asks for; 0: as many as the sampler makes
    )
    replays: "tuple[Rollout, ...]" = ()  # of its earlier rollouts those that the history kept


@dataclass(frozen=True)
class Action:
    """One answer of the policy: its parts (tokens, latents, thoughts), each with its likelihood.

    An action may be put in the policy's mouth, which it is not to learn; its context may begin anew
    with what was `seen`; and it may have been drawn in another context than the one it is in now.
    """

    items: tuple[Any, ...]
    logp: tuple[float, ...]  # of each part, under the distribution it was drawn from
    observation: tuple[
        Any, ...
    ] = ()  # what the world said since the last action, as the policy read it
    text: str = ""
    finish_reason: str = "end"  # why it ended: "end" of text, "stop" string, "length" limit
    sampled: bool = True  # drawn from the policy; False: recited or forced, and `logp` is 0
    in_loss: bool = True  # trained on; False: forced, it is only read
    resets_context: bool = False  # nothing before what was `seen` is read any more
    off_context: bool = False  # drawn in another context or at an earlier step: `logp` is of then
    rng_key: int = 0  # the random numbers it was drawn with
    policy_version: int = (
        0  # of the weights it was drawn with: how many steps they had been trained
    )
    image: str = ""  # what it made that is no text: a picture, as `storage.arrays` writes tensors


PRUNED = "pruned"  # why a rollout failed that its sampler gave up: nobody judged it


@dataclass(frozen=True)
class Rollout:
    """One attempt at a task: what was said and what was done, in turn, and what it was worth."""

    turns: tuple[tuple[Observation, Action], ...] = ()
    reward: float = float("nan")
    reward_terms: Mapping[str, float] = field(default_factory=dict)  # the reward's components
    step_values: Mapping[str, tuple[float, ...]] = field(
        default_factory=dict
    )  # what the world says of each of its actions: step rewards, states, places
    error: str = ""  # why it could not be judged; such a rollout has no reward
    source: str = "policy"  # who made it: "policy", "worked" solution, an expert's name
    role: str = ""  # whose it is to act, where several policies are trained; "": the first's

    @property
    def text(self) -> str:
        """Everything the policy said."""
        return "".join(action.text for _, action in self.turns)

    @property
    def length(self) -> int:
        """How many actions the policy took."""
        return sum(len(action.items) for _, action in self.turns)

    @property
    def truncated(self) -> bool:
        """Did the last action end only because it reached its length limit?"""
        return bool(self.turns) and self.turns[-1][1].finish_reason == "length"

    @property
    def contexts(self) -> "tuple[Rollout, ...]":
        """Its turns by the contexts that they are in, each as a rollout."""
        starts = [i for i, (_, action) in enumerate(self.turns) if action.resets_context and i]
        cuts = pairwise([0, *starts, len(self.turns)])
        return tuple(replace(self, turns=self.turns[a:b]) for a, b in cuts)

    def append_turn(self, observation: Observation, action: Action) -> "Rollout":
        """The same rollout, one turn longer."""
        return replace(self, turns=(*self.turns, (observation, action)))


@dataclass(frozen=True)
class RewardResult:
    """What a rollout was worth, by part and in all, or why that could not be said.

    `step_values` are one number for each action of the rollout, by name; a batch has `step/name` in
    `seen`.
    """

    reward: float = float("nan")
    reward_terms: Mapping[str, float] = field(default_factory=dict)
    step_values: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class Group:
    """Rollouts that are compared with one another."""

    task: Task
    rollouts: tuple[Rollout, ...]

    @property
    def rewards(self) -> tuple[float, ...]:
        """The reward of each rollout."""
        return tuple(r.reward for r in self.rollouts)

    @property
    def has_reward_variance(self) -> bool:
        """Do its rewards differ, so that comparing teaches something?"""
        return len(set(self.rewards)) > 1
