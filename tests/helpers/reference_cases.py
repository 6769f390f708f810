"""Comparison of our arithmetic with numbers recorded from released code.

Rows of signals and log-probabilities have the width of the longest rollout.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pytest
import torch
from torch import Tensor

from grupo.core.batch import Batch, Signals, TaskHistory, broadcast_to_tokens
from grupo.core.schedules import resolve_schedules
from grupo.method import Method
from grupo.testing.batches import make_batch, perturb_logp

Rows = Sequence[Sequence[float]]
NamedRows = Mapping[str, Rows]


@dataclass(frozen=True)
class Source:
    """Released code that computed the numbers.

    Args:
        repository: Owner and name on GitHub.
        functions: The function, or a description of the lines, by path of its file.
        commit: Commit hash, abbreviated to seven digits or more.
        release: Number of the installed release, where the code is not that of a commit.
    """

    repository: str
    functions: Mapping[str, str]
    commit: str = ""
    release: str = ""


@dataclass(frozen=True)
class BatchInputs:
    """Arguments of `make_batch`.

    Args:
        old_logp: Old log-probabilities (N, T); -1 by default. Those of the sampler and of the
            reference stay -1 unless they are signals.
        history: Rewards of earlier groups of each group's task, oldest first.
    """

    group: Sequence[int]
    reward: Sequence[float] | None = None
    length: Sequence[int] | None = None
    advantage: Sequence[float] | None = None
    old_logp: Rows | None = None
    reward_terms: Mapping[str, Sequence[float]] = field(default_factory=dict)
    signals: NamedRows = field(default_factory=dict)
    turn: Sequence[Sequence[int]] | None = None
    history: Sequence[Rows] = ()

    def batch(self) -> Batch:
        batch = make_batch(
            self.group,
            self.reward,
            length=self.length,
            advantage=self.advantage,
            reward_terms=self.reward_terms,
            signals=self.signals,
            turn=self.turn,
            history=[*map(_task_history, self.history)],
        )
        if self.old_logp is None:
            return batch
        return replace(batch, old_logp=_to_tensor(self.old_logp))


@dataclass(frozen=True)
class PolicyInputs:
    """Signals of the policy that is trained.

    Args:
        logp_change: Log-probabilities minus the old ones (N, T).
        signals: Further signals by name, such as the entropy (N, T).
    """

    logp_change: Rows
    signals: NamedRows = field(default_factory=dict)


@dataclass(frozen=True)
class Recorded:
    """Numbers that the released code computed, and the tolerance of the comparison.

    Args:
        numbers: One number, or an entry per rollout: a number that applies to each action of the
            rollout, or a number per action. Entries that were not recorded are null.
        rel: Relative tolerance; the default of `pytest.approx` is 1e-6.
        abs: Absolute tolerance; the default of `pytest.approx` is 1e-12.
        scale: Factor that converts our numbers to those of the released code.
    """

    numbers: Any
    rel: float | None = None
    abs: float | None = None
    scale: float = 1.0

    def approx(self, numbers: Sequence[float]) -> Any:
        return pytest.approx(numbers, rel=self.rel, abs=self.abs)


@dataclass(frozen=True)
class ReferenceCase:
    """One computation of released code.

    Args:
        sources: Names of the sources; more than one if all compute the same numbers.
        code: Our method or component, an expression in the namespace of the file's modules.
        batch: The batch.
        expected: Recorded numbers by quantity, a key of `QUANTITIES`.
        variant: Distinguishes cases of the same sources in test names.
        options: Options of the released code.
        deviation: Where the released code and ours differ, and why.
        progress: Progress of training, 0 to 1, for schedules.
        policy: Signals of the trained policy, for losses.
        file: Name of the JSON file, without the suffix.
        namespace: Names in `code`.
    """

    sources: Sequence[str]
    code: str
    batch: BatchInputs
    expected: Mapping[str, Recorded]
    variant: str = ""
    options: str = ""
    deviation: str = ""
    progress: float = 0.0
    policy: PolicyInputs | None = None
    file: str = ""
    namespace: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return "-".join(filter(None, [self.file, "+".join(self.sources), self.variant]))

    @cached_property
    def subject(self) -> Any:
        """The method or component, with schedules replaced by their values."""
        return resolve_schedules(eval(self.code, dict(self.namespace)), self.progress)

    @cached_property
    def advantage_estimator(self) -> Callable[[Tensor, Batch], Tensor]:
        return self.subject.advantage if isinstance(self.subject, Method) else self.subject

    @cached_property
    def inputs(self) -> Batch:
        """The batch, with advantages of the method if the case has none."""
        batch = self.batch.batch()
        if self.batch.advantage is not None or not isinstance(self.subject, Method):
            return batch
        return batch.with_advantage(self.advantage_estimator)

    @cached_property
    def pi(self) -> Signals:
        assert self.policy is not None, f"{self}: the loss requires `policy`"
        pi = perturb_logp(self.inputs, self.policy.logp_change)
        pi |= {name: _to_tensor(rows) for name, rows in self.policy.signals.items()}
        return pi


def _advantage(case: ReferenceCase) -> Tensor:
    """Advantages, or rewards of a component that shapes rewards."""
    return case.inputs.with_advantage(case.advantage_estimator).advantage


def _statistic(case: ReferenceCase) -> Tensor:
    """A function of the batch alone."""
    return broadcast_to_tokens(case.subject(case.inputs), case.inputs)


def _token_loss(case: ReferenceCase) -> Tensor:
    """The loss of each action, before the aggregation."""
    loss = case.subject.loss if isinstance(case.subject, Method) else case.subject
    return loss(case.pi, case.inputs)


def _weight(case: ReferenceCase) -> Tensor:
    """The weight of each action, a function of the policy and the batch."""
    return case.subject(case.pi, case.inputs)


def _loss(case: ReferenceCase) -> Tensor:
    """The aggregated loss of a method; the sum over actions of a loss by itself."""
    if isinstance(case.subject, Method):
        return (case.subject.aggregation(case.inputs) * _token_loss(case)).sum()
    return (case.inputs.mask * _token_loss(case)).sum()


def _gradient(case: ReferenceCase) -> Tensor:
    """The gradient of the loss with respect to the log-probabilities."""
    (gradient,) = torch.autograd.grad(_loss(case), case.pi.logp)
    assert not gradient[~case.inputs.mask].any(), f"{case}: gradient outside the mask"
    return gradient


QUANTITIES: Mapping[str, Callable[[ReferenceCase], Tensor]] = {
    "advantage": _advantage,
    "reward": _advantage,
    "statistic": _statistic,
    "token_loss": _token_loss,
    "weight": _weight,
    "loss": _loss,
    "gradient": _gradient,
}


def compared_numbers(case: ReferenceCase, quantity: str) -> tuple[list[float], list[float]]:
    """Our numbers of a quantity, scaled, and the recorded ones; null entries are left out."""
    recorded = case.expected[quantity]
    ours = (QUANTITIES[quantity](case) * recorded.scale).detach()
    if ours.ndim == 0:
        return [ours.item()], [recorded.numbers]
    ours = [row[acted] for row, acted in zip(ours, case.inputs.mask, strict=True)]
    rows = zip(ours, recorded.numbers, strict=True)
    pairs = [pair for row, entry in rows for pair in _pairs(row, entry) if pair[1] is not None]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _pairs(row: Tensor, entry: Any) -> Iterator[tuple[float, Any]]:
    """Our numbers of a rollout and the recorded ones; equal numbers of ours are compared once."""
    if isinstance(entry, list):
        return zip(row.tolist(), entry, strict=True)
    return ((number, entry) for number in row.unique().tolist())


def _task_history(rewards: Rows) -> TaskHistory:
    return TaskHistory(tuple(range(len(rewards))), tuple(map(tuple, rewards)))


def _to_tensor(rows: Rows) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)
