"""What flows to the learner: groups of rollouts as tensors.

Shape letters, here and everywhere:

    P  groups           rollouts that are compared with one another
    R  rollouts         things that received one outcome reward
    N  rows             sequences the policy evaluates; one per rollout unless its context was cut
    T  actions per row  tokens, denoising steps or latent thoughts, from the row's first action on
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from grupo.core.errors import MissingSignalError

PerRollout = Float[Tensor, "R"]
PerAction = Float[Tensor, "N T"]


class SignalDict(dict[str, Tensor]):
    """Tensors by name; one that was not measured raises by its name."""

    def __missing__(self, name: str) -> Tensor:
        raise MissingSignalError(
            f"{name!r} was not measured. Measured: {', '.join(self) or 'nothing'}."
        )


class Signals(SignalDict):
    """What a policy says of a batch, one number per action (N, T), by name; gradients flow through.

    `logp` is always among them. `entropy` is in nats.
    """

    @property
    def logp(self) -> PerAction:
        """Log-probability of each action."""
        return self["logp"]

    @property
    def entropy(self) -> PerAction:
        """Entropy of the distribution each action is drawn from, in nats."""
        return self["entropy"]


@dataclass(frozen=True)
class TaskHistory:
    """What happened to a task before: the steps and the rewards of its groups, oldest first.

    Rollouts that could not be judged have no reward here. `parts` are the components of those
    rewards that some piece says it `required_reward_history`, by name.
    """

    steps: tuple[int, ...] = ()
    rewards: tuple[tuple[float, ...], ...] = ()
    reward_terms: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)

    @property
    def mean_rewards(self) -> tuple[float, ...]:
        """The mean reward of each past group."""
        return tuple(sum(r) / len(r) for r in self.rewards)


@dataclass(frozen=True)
class Batch:
    """R rollouts in P groups, laid out as N rows of at most T actions."""

    reward: Float[Tensor, "R"]  # outcome of each rollout; float64, for credit is exact
    group: Int[Tensor, "R"]  # in 0..P-1
    rollout: Int[Tensor, "N"]  # in 0..R-1
    mask: Bool[
        Tensor, "N T"
    ]  # where the policy acted and is to learn (not the world's words, not forced tokens)
    turn: Int[Tensor, "N T"]  # which of its turns
    old_logp: Float[Tensor, "N T"]  # under the policy and context that ratios are taken against
    advantage: Float[Tensor, "N T"]  # what actions are credited with; born as the reward itself
    signals: SignalDict = field(
        default_factory=SignalDict
    )  # (N, T) measured otherwise: "logp@sampler", "logp@ref", "sampled"
    reward_terms: SignalDict = field(default_factory=SignalDict)  # (R,) the reward's components
    history: tuple[TaskHistory, ...] = ()  # per group, what happened to its task before
    inputs: Any = (
        None  # what the policy needs to evaluate the rows again; opaque to the mathematics
    )

    @classmethod
    def of(
        cls,
        reward: Float[Tensor, "R"],
        group: Int[Tensor, "R"],
        *,
        rollout: Int[Tensor, "N"],
        mask: Bool[Tensor, "N T"],
        old_logp: Float[Tensor, "N T"],
        turn: Int[Tensor, "N T"] | None = None,
        **other_fields: Any,
    ) -> "Batch":
        """A batch before any credit: every action is credited with its rollout's reward."""
        turn = mask.long() * 0 if turn is None else turn
        advantage = (reward[rollout, None] * mask).to(old_logp)
        return cls(reward, group, rollout, mask, turn, old_logp, advantage, **other_fields)

    def select_rows(self, rows: Int[Tensor, "n"]) -> "Batch":
        """The same batch restricted to some rows; rollouts and groups keep their numbering."""
        return replace(
            self,
            rollout=self.rollout[rows],
            mask=self.mask[rows],
            turn=self.turn[rows],
            old_logp=self.old_logp[rows],
            advantage=self.advantage[rows],
            signals=SignalDict({name: x[rows] for name, x in self.signals.items()}),
            inputs=select_input_rows(self.inputs, rows),
        )

    def with_advantage(self, estimator: "Callable[[Tensor, Batch], Tensor]") -> "Batch":
        """The same batch, its actions credited by `credit`."""
        return replace(
            self,
            advantage=broadcast_to_tokens(estimator(self.reward, self), self).to(self.old_logp),
        )

    def with_signals(self, signals: Mapping[str, Tensor]) -> "Batch":
        """The same batch with more measured."""
        return replace(self, signals=SignalDict({**self.signals, **signals}))

    @property
    def row_group(self) -> Int[Tensor, "N"]:
        """The group of each row."""
        return self.group[self.rollout]

    @property
    def lengths(self) -> Float[Tensor, "R"]:
        """How many actions each rollout took, over all its rows."""
        return self.reward.new_zeros(len(self.reward)).index_add(
            0, self.rollout, self.mask.sum(1).to(self.reward)
        )


def broadcast_to_tokens(values: Tensor, batch: Batch) -> PerAction:
    """Credit per rollout (R,) to credit per action (N, T), 0 where masked; the latter passes."""
    per_action = values if values.ndim == 2 else values[batch.rollout, None]
    return per_action * batch.mask


def select_input_rows(inputs: Any, rows: Int[Tensor, "n"]) -> Any:
    """Some rows of whatever a policy keeps per row: tensors, tuples, and mappings of them."""
    if isinstance(inputs, Tensor):
        return inputs[rows]
    if isinstance(inputs, tuple):
        return tuple(inputs[i] for i in rows.tolist())
    if isinstance(inputs, Mapping):
        return {name: select_input_rows(x, rows) for name, x in inputs.items()}
    return inputs


EMPTY_BATCH = Batch.of(  # what a step learns from whose groups were all dropped
    torch.zeros(0, dtype=torch.float64),
    torch.zeros(0, dtype=torch.long),
    rollout=torch.zeros(0, dtype=torch.long),
    mask=torch.zeros(0, 0, dtype=torch.bool),
    old_logp=torch.zeros(0, 0),
)
