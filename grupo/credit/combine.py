"""Credits made of credits."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from grupo.batch import Batch
from grupo.piece import piece, show


class Credit(Protocol):
    """From the credit so far to the next, (R,) or (N, T)."""

    def __call__(self, x: Tensor, batch: Batch, /) -> Tensor: ...


def identity(x: Tensor, batch: Batch) -> Tensor:
    """The reward itself: plain REINFORCE."""
    return x


@piece
class Chain:
    """Credits applied from left to right."""

    steps: tuple[Credit, ...]

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        for step in self.steps:
            x = step(x, batch)
        return x

    def __repr__(self) -> str:
        return f"chain({', '.join(map(show, self.steps))})"


def chain(*steps: Credit) -> Chain:
    """Apply `steps` from left to right; chains within chains are laid flat.

    >>> from grupo.credit import Center, ScaleByStd
    >>> chain(Center(), ScaleByStd())
    chain(Center(), ScaleByStd(eps=1e-06))
    """
    return Chain(
        tuple(s for step in steps for s in (step.steps if isinstance(step, Chain) else (step,)))
    )


@piece
class EachPart:
    """Credit every component of the reward on its own, then add them up: sum_k w_k credit(r_k)."""

    credit: Credit
    weights: tuple[tuple[str, float], ...]

    @property
    def reads_parts(self) -> tuple[str, ...]:
        """The components of the reward that it reads, by name."""
        return tuple(name for name, _ in self.weights)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return torch.stack(
            [w * self.credit(batch.parts[name], batch) for name, w in self.weights]
        ).sum(0)


@piece
class Regrouped:
    """Credit as if others were compared: `by` answers a new group label (R,) for each rollout."""

    credit: Credit
    by: Callable[[Batch], Int[Tensor, "R"]]

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return self.credit(x, replace(batch, group=self.by(batch)))


@piece
class Masked:
    """Credit where `keep` (R,) holds, 0 elsewhere."""

    credit: Credit
    keep: Callable[[Batch], Bool[Tensor, "R"]]

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        kept = self.keep(batch)
        credited = self.credit(x, batch)
        return credited * (kept if credited.ndim == 1 else kept[batch.rollout, None])


@piece
class Clipped:
    """Credit so far, held between two bounds."""

    low: float
    high: float

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x.clamp(self.low, self.high)
