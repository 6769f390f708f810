"""The batch: groups of rollouts as tensors, the input of every advantage estimator and loss.

Shape letters, here and everywhere:

    P  groups           rollouts that are compared with one another
    R  rollouts         each has one outcome reward
    N  rows             sequences that the policy evaluates: one per rollout, or one per context
                        where a rollout's context was reset
    T  actions per row  tokens, denoising steps or latent thoughts, from the row's first action on
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from grupo.core.task_statistic import ScoredGroup, StatisticState, TaskStatistic
from grupo.util.device_copies import to_device
from grupo.util.errors import ConfigError, MissingSignalError

PerRollout = Float[Tensor, "R"]
PerAction = Float[Tensor, "N T"]


class SignalDict(dict[str, Tensor]):
    """Tensors by name; a missing name raises `MissingSignalError` with the names that exist."""

    def __missing__(self, name: str) -> Tensor:
        available = ", ".join(self) or "nothing"
        raise MissingSignalError(f"{name!r} was not measured. Measured: {available}.")


class Signals(SignalDict):
    """Signals that a policy computes for a batch: by name, one number per action (N, T).

    Gradients flow through them. `logp` is always present; `entropy` is in nats.
    """

    @property
    def logp(self) -> PerAction:
        """Log-probability of each action."""
        return self["logp"]

    @property
    def entropy(self) -> PerAction:
        """Entropy of the distribution that each action was sampled from, in nats."""
        return self["entropy"]


@dataclass(frozen=True)
class TaskHistory:
    """The earlier groups of a task or of a source, of which components read statistics.

    A run keeps no groups: it keeps the states of the statistics that the components of its method
    declare as `Requires.task_statistics`, or as `Requires.source_statistics` for the tasks of a
    source. A test may list the groups themselves.

    Args:
        steps: Training step of each listed group, oldest first.
        rewards: Rewards of each listed group's rollouts.
        reward_terms: The components of these rewards, by name.
        states: States of the declared statistics before the listed groups. None means that there is
            no earlier group, and that every statistic can be read.
    """

    steps: tuple[int, ...] = ()
    rewards: tuple[tuple[float, ...], ...] = ()
    reward_terms: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)
    states: Mapping[TaskStatistic, StatisticState] | None = None

    def state(self, statistic: TaskStatistic) -> StatisticState:
        """The state of a statistic after all groups.

        Raises:
            ConfigError: No component declares the statistic.
        """
        states = {statistic: statistic.initial_state} if self.states is None else self.states
        if statistic not in states:
            raise ConfigError(
                f"method: a component reads {statistic!r} of a task's history and does not declare"
                f" it: requires = Requires(task_statistics=({statistic!r},)), or source_statistics"
                " for its source's."
            )
        state = states[statistic]
        for i, step in enumerate(self.steps):
            terms = {name: values[i] for name, values in self.reward_terms.items()}
            state = statistic(state, ScoredGroup(step, self.rewards[i], terms))
        return state


@dataclass(frozen=True)
class Batch:
    """R rollouts in P groups, laid out as N rows of at most T actions.

    Args:
        reward: Outcome reward of each rollout (R,), float64 so that group statistics are exact.
        group: Group of each rollout (R,), in 0..P-1.
        rollout: Rollout of each row (N,), in 0..R-1.
        sequence: Number of the sequence of each row (N,). Aggregations and ratios of a sequence
            cover all its rows. A row is a sequence of its own, unless a chat template rewrote
            earlier answers of its rollout: the rows of such a rollout are one sequence.
        mask: True where the policy acted and is trained (N, T); False on observations, forced
            tokens and padding.
        turn: Turn of each action within its rollout (N, T).
        old_logp: Log-probability of each action (N, T) under the policy and the context that
            importance ratios are taken against.
        advantage: Advantage of each action (N, T); the rollout's reward before an estimator ran.
        signals: Numbers (N, T) measured before the loss: "logp@sampler", "logp@ref", "sampled".
        reward_terms: Components of the reward (R,), by name.
        history: Earlier rewards of each group's task (P entries).
        inputs: Whatever the policy needs to evaluate the rows; opaque to the mathematics.
    """

    reward: Float[Tensor, "R"]
    group: Int[Tensor, "R"]
    rollout: Int[Tensor, "N"]
    sequence: Int[Tensor, "N"]
    mask: Bool[Tensor, "N T"]
    turn: Int[Tensor, "N T"]
    old_logp: Float[Tensor, "N T"]
    advantage: Float[Tensor, "N T"]
    signals: SignalDict = field(default_factory=SignalDict)
    reward_terms: SignalDict = field(default_factory=SignalDict)
    history: tuple[TaskHistory, ...] = ()
    inputs: Any = None

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
        sequence: Int[Tensor, "N"] | None = None,
        **other_fields: Any,
    ) -> "Batch":
        """A batch whose advantages are not estimated yet: each action has its rollout's reward.

        Args:
            turn: 0 everywhere by default.
            sequence: a sequence for each row by default.
            other_fields: Further fields of `Batch`, by name.
        """
        turn = mask.long() * 0 if turn is None else turn
        sequence = (
            torch.arange(len(rollout), device=rollout.device) if sequence is None else sequence
        )
        advantage = (reward[rollout, None] * mask).to(old_logp)
        return cls(
            reward, group, rollout, sequence, mask, turn, old_logp, advantage, **other_fields
        )

    def select_rows(self, rows: Int[Tensor, "n"]) -> "Batch":
        """The batch restricted to the given rows; rollouts and groups keep their numbering."""
        return replace(
            self,
            rollout=self.rollout[rows],
            sequence=self.sequence[rows],
            mask=self.mask[rows],
            turn=self.turn[rows],
            old_logp=self.old_logp[rows],
            advantage=self.advantage[rows],
            signals=SignalDict({name: x[rows] for name, x in self.signals.items()}),
            inputs=select_input_rows(self.inputs, rows),
        )

    def to(self, device: torch.device) -> "Batch":
        """The batch with its tensors on a device; the policy's inputs stay where they are."""
        moved = {f.name: _moved(getattr(self, f.name), device) for f in fields(self)}
        return replace(self, **{**moved, "inputs": self.inputs})

    def with_advantage(self, estimator: "Callable[[Tensor, Batch], Tensor]") -> "Batch":
        """The batch with the advantages that `estimator` computes from its rewards."""
        values = estimator(self.reward, self)
        return replace(self, advantage=broadcast_to_tokens(values, self).to(self.old_logp))

    def with_signals(self, signals: Mapping[str, Tensor]) -> "Batch":
        """The batch with further measured signals (N, T)."""
        return replace(self, signals=SignalDict({**self.signals, **signals}))

    @property
    def row_group(self) -> Int[Tensor, "N"]:
        """The group of each row."""
        return self.group[self.rollout]

    @property
    def sequence_index(self) -> Int[Tensor, "N"]:
        """The sequences of the rows, numbered anew from 0; no device waits for the result."""
        in_order, order = self.sequence.sort(stable=True)
        is_new = in_order[1:] != in_order[:-1]
        number = torch.nn.functional.pad(is_new.cumsum(0), (min(1, len(in_order)), 0))
        return torch.empty_like(order).scatter(0, order, number)

    @property
    def has_forks(self) -> bool:
        """Whether several rows are one sequence."""
        return self.sequence.unique().numel() < len(self.sequence)

    @property
    def sequence_lengths(self) -> Float[Tensor, "N"]:
        """Number of trained actions of each row's sequence."""
        index = self.sequence_index
        per_row = self.mask.sum(1).to(self.reward)
        return torch.zeros_like(per_row).index_add(0, index, per_row)[index]

    @property
    def num_sequences(self) -> int:
        """Number of sequences that have a trained action."""
        return self.sequence[self.mask.any(1)].unique().numel()

    @property
    def lengths(self) -> Float[Tensor, "R"]:
        """Number of trained actions of each rollout, over all its rows."""
        per_row = self.mask.sum(1).to(self.reward)
        return self.reward.new_zeros(len(self.reward)).index_add(0, self.rollout, per_row)


def broadcast_to_tokens(values: Tensor, batch: Batch) -> PerAction:
    """Values per rollout (R,) or per action (N, T) as values per action (N, T), 0 where masked."""
    per_action = values if values.ndim == 2 else values[batch.rollout, None]
    return per_action * batch.mask


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor):
        return to_device(value, device)
    if isinstance(value, SignalDict):
        return SignalDict({name: to_device(x, device) for name, x in value.items()})
    return value


def select_input_rows(inputs: Any, rows: Int[Tensor, "n"]) -> Any:
    """The given rows of a policy's inputs: tensors, tuples, and mappings of them."""
    if isinstance(inputs, Tensor):
        return inputs[rows]
    if isinstance(inputs, tuple):
        return tuple(inputs[i] for i in rows.tolist())
    if isinstance(inputs, Mapping):
        return {name: select_input_rows(x, rows) for name, x in inputs.items()}
    return inputs


EMPTY_BATCH = Batch.of(  # the batch of a step whose groups were all filtered out
    torch.zeros(0, dtype=torch.float64),
    torch.zeros(0, dtype=torch.long),
    rollout=torch.zeros(0, dtype=torch.long),
    mask=torch.zeros(0, 0, dtype=torch.bool),
    old_logp=torch.zeros(0, 0),
)
