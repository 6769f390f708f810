"""Credits made of credits."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from grupo.core.batch import Batch
from grupo.core.component import piece, show


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

    >>> from grupo.algo.advantages import Center, ScaleByStd
    >>> chain(Center(), ScaleByStd())
    chain(Center(), ScaleByStd(eps=1e-06))
    """
    return Chain(
        tuple(s for step in steps for s in (step.steps if isinstance(step, Chain) else (step,)))
    )


@piece
class EachPart:
    """Credit every component of the reward on its own, then add them up: sum_k w_k credit(r_k).

    >>> from grupo.algo.advantages import Center
    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of(group=[0, 0], parts={"right": [1.0, 0.0], "short": [0.0, 4.0]})
    >>> EachPart(Center(), (("right", 1.0), ("short", 0.5)))(batch.reward, batch).tolist()
    [-0.5, 0.5]
    """

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
class TakePart:
    """The component `part` of the reward; what came is left.

    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of(group=[0, 0], reward=[5.0, 5.0], parts={"right": [1.0, 0.0]})
    >>> TakePart("right")(batch.reward, batch).tolist()
    [1.0, 0.0]
    """

    part: str

    @property
    def reads_parts(self) -> tuple[str, ...]:
        """The component it takes."""
        return (self.part,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return batch.parts[self.part].to(x)


@piece
class ByPart:
    """Labels of (group, component of the reward): who is alike in the component `part`.

    >>> import torch
    >>> from grupo.testing.batches import batch_of
    >>> ByPart("mode")(batch_of(group=[0, 0, 0, 1], parts={"mode": [1.0, 2.0, 1.0, 1.0]}))
    tensor([0, 1, 0, 2])
    """

    part: str

    @property
    def reads_parts(self) -> tuple[str, ...]:
        """The component it reads."""
        return (self.part,)

    def __call__(self, batch: Batch) -> Int[Tensor, "R"]:
        pairs = torch.stack([batch.group.double(), batch.parts[self.part].double()], dim=1)
        return pairs.unique(dim=0, return_inverse=True)[1]


@piece
class Regrouped:
    """Credit as if others were compared: `by` answers a new group label (R,) for each rollout.

    >>> from grupo.algo.advantages import Center
    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of(group=[0, 0, 0], parts={"mode": [1.0, 2.0, 1.0]})
    >>> Regrouped(Center(), ByPart("mode"))(torch.tensor([1.0, 5.0, 3.0]), batch)
    tensor([-1.,  0.,  1.])
    """

    credit: Credit
    by: Callable[[Batch], Int[Tensor, "R"]]

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return self.credit(x, replace(batch, group=self.by(batch)))


@piece
class Masked:
    """Credit where `keep` (R,) holds, 0 elsewhere.

    >>> from grupo.algo.advantages import Center
    >>> from grupo.testing.batches import batch_of
    >>> def short(batch):
    ...     return batch.lengths < 2
    >>> batch = batch_of(group=[0, 0], length=[1, 2])
    >>> Masked(Center(), short)(torch.tensor([0.0, 1.0]), batch)
    tensor([-0.5000,  0.0000])
    """

    credit: Credit
    keep: Callable[[Batch], Bool[Tensor, "R"]]

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        kept = self.keep(batch)
        credited = self.credit(x, batch)
        return credited * (kept if credited.ndim == 1 else kept[batch.rollout, None])


@piece
class Clipped:
    """Credit so far, held between two bounds.

    >>> from grupo.testing.batches import batch_of
    >>> Clipped(-1.0, 2.0)(torch.tensor([-3.0, 0.5]), batch_of(group=[0, 0]))
    tensor([-1.0000,  0.5000])
    """

    low: float
    high: float

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x.clamp(self.low, self.high)
