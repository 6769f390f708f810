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

from grupo.core.errors import Unmeasured

PerRollout = Float[Tensor, "R"]
PerAction = Float[Tensor, "N T"]


class Named(dict[str, Tensor]):
    """Tensors by name; one that was not measured raises by its name."""

    def __missing__(self, name: str) -> Tensor:
        raise Unmeasured(f"{name!r} was not measured. Measured: {', '.join(self) or 'nothing'}.")


class Signals(Named):
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
class Past:
    """What happened to a task before: the steps and the rewards of its groups, oldest first.

    Rollouts that could not be judged have no reward here. `parts` are the components of those
    rewards that some piece says it `remembers`, by name.
    """

    steps: tuple[int, ...] = ()
    rewards: tuple[tuple[float, ...], ...] = ()
    parts: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)

    @property
    def means(self) -> tuple[float, ...]:
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
    seen: Named = field(
        default_factory=Named
    )  # (N, T) measured otherwise: "logp@sampler", "logp@ref", "sampled"
    parts: Named = field(default_factory=Named)  # (R,) the reward's components
    past: tuple[Past, ...] = ()  # per group, what happened to its task before
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
        **more: Any,
    ) -> "Batch":
        """A batch before any credit: every action is credited with its rollout's reward."""
        turn = mask.long() * 0 if turn is None else turn
        advantage = (reward[rollout, None] * mask).to(old_logp)
        return cls(reward, group, rollout, mask, turn, old_logp, advantage, **more)

    def take(self, rows: Int[Tensor, "n"]) -> "Batch":
        """The same batch restricted to some rows; rollouts and groups keep their numbering."""
        return replace(
            self,
            rollout=self.rollout[rows],
            mask=self.mask[rows],
            turn=self.turn[rows],
            old_logp=self.old_logp[rows],
            advantage=self.advantage[rows],
            seen=Named({name: x[rows] for name, x in self.seen.items()}),
            inputs=take(self.inputs, rows),
        )

    def credited(self, credit: "Callable[[Tensor, Batch], Tensor]") -> "Batch":
        """The same batch, its actions credited by `credit`."""
        return replace(self, advantage=spread(credit(self.reward, self), self).to(self.old_logp))

    def with_seen(self, signals: Mapping[str, Tensor]) -> "Batch":
        """The same batch with more measured."""
        return replace(self, seen=Named({**self.seen, **signals}))

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


def spread(credit: Tensor, batch: Batch) -> PerAction:
    """Credit per rollout (R,) to credit per action (N, T), 0 where masked; the latter passes."""
    per_action = credit if credit.ndim == 2 else credit[batch.rollout, None]
    return per_action * batch.mask


def take(inputs: Any, rows: Int[Tensor, "n"]) -> Any:
    """Some rows of whatever a policy keeps per row: tensors, tuples, and mappings of them."""
    if isinstance(inputs, Tensor):
        return inputs[rows]
    if isinstance(inputs, tuple):
        return tuple(inputs[i] for i in rows.tolist())
    if isinstance(inputs, Mapping):
        return {name: take(x, rows) for name, x in inputs.items()}
    return inputs


NOTHING = Batch.of(  # what a step learns from whose groups were all dropped
    torch.zeros(0, dtype=torch.float64),
    torch.zeros(0, dtype=torch.long),
    rollout=torch.zeros(0, dtype=torch.long),
    mask=torch.zeros(0, 0, dtype=torch.bool),
    old_logp=torch.zeros(0, 0),
)
