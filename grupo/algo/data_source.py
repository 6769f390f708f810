"""Sources: own rollouts and demonstrations, told apart, credited apart and weighed apart.

An action that the policy did not draw has `sampled` 0 in `batch.seen`, and log-probability 0 in
`old_logp`; a rollout without a drawn action is a demonstration. What a demonstration is credited
with is how much it is imitated.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Bool
from torch import Tensor

from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, spread
from grupo.core.component import piece
from grupo.core.types import Rollout

SAMPLED, MOVED = frozenset({"sampled"}), frozenset({"moved"})
Credit = Callable[[Tensor, Batch], Tensor]


def drawn(batch: Batch) -> Bool[Tensor, "N T"]:
    """Actions that the policy drew itself; where masked, whatever stands there.

    >>> from grupo.testing.batches import batch_of
    >>> drawn(batch_of(group=[0, 0], seen={"sampled": [[1.0], [0.0]]})).tolist()
    [[True], [False]]
    """
    return batch.seen["sampled"] > 0


def elsewhere(batch: Batch) -> Bool[Tensor, "N T"]:
    """Actions drawn in another context or at an earlier step: guided, refined, replayed ones.

    >>> from grupo.testing.batches import batch_of
    >>> elsewhere(batch_of(group=[0, 0], seen={"moved": [[1.0], [0.0]]})).tolist()
    [[True], [False]]
    """
    return batch.seen["moved"] > 0


def demonstrations(batch: Batch) -> Bool[Tensor, "R"]:
    """Rollouts that acted, but drew none of their actions.

    >>> from grupo.testing.batches import batch_of
    >>> demonstrations(batch_of(group=[0, 0], seen={"sampled": [[1.0], [0.0]]})).tolist()
    [False, True]
    """
    own = (batch.mask & drawn(batch)).sum(1).to(batch.reward)
    count = torch.zeros_like(batch.reward).index_add(0, batch.rollout, own)
    return (batch.lengths > 0) & (count == 0)


def own(rollout: Rollout) -> bool:
    """Did the policy draw any of its actions? Then it is no demonstration.

    >>> from grupo.core.types import Action
    >>> own(Rollout((("?", Action((1,), (0.0,), sampled=False)),)))
    False
    """
    return any(action.sampled for _, action in rollout.turns)


def fully(x: Tensor, batch: Batch) -> Tensor:
    """1 for every rollout: imitate all alike.

    >>> from grupo.testing.batches import batch_of
    >>> fully(torch.tensor([0.0, 3.0]), batch_of(group=[0, 0]))
    tensor([1., 1.])
    """
    return torch.ones_like(x)


@piece
class Apart:
    """Credit own rollouts as if there were no demonstrations; demonstrations by `theirs`.

    `theirs` sees the whole group and says how much they are imitated: 1 unless told otherwise.

    >>> from grupo.algo.advantages import Center
    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of(group=[0, 0, 0], seen={"sampled": [[1.0], [1.0], [0.0]]})
    >>> Apart(Center())(torch.tensor([1.0, 0.0, 5.0]), batch).flatten()
    tensor([ 0.5000, -0.5000,  1.0000])
    """

    own: Credit
    theirs: Credit = fully

    @property
    def needs(self) -> frozenset[str]:
        """It reads who drew what."""
        return SAMPLED

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        theirs = demonstrations(batch)
        mine = batch.mask & ~theirs[batch.rollout, None]
        alone = replace(batch, group=2 * batch.group + theirs.long(), mask=mine)
        own = spread(self.own(x, alone), batch)
        imitated = spread(self.theirs(x, batch), batch)
        return torch.where(theirs[batch.rollout, None], imitated, own)


@piece
class Stuck:
    """Rollouts (R,) of groups in which fewer than `enough` of the own rollouts are right.

    >>> from grupo.testing.batches import batch_of
    >>> right = {"correct": [0.0, 1.0, 0.0]}
    >>> batch = batch_of([0, 0, 1], parts=right, seen={"sampled": [[1.0], [0.0], [1.0]]})
    >>> Stuck()(batch).tolist(), Stuck(enough=0)(batch).tolist()
    ([True, True, True], [False, False, False])
    """

    enough: int = 1
    part: str = "correct"
    right: float = 0.5

    @property
    def needs(self) -> frozenset[str]:
        """It reads who drew what."""
        return SAMPLED

    @property
    def reads_parts(self) -> tuple[str, ...]:
        """The component that says who is right."""
        return (self.part,)

    def __call__(self, batch: Batch) -> Bool[Tensor, "R"]:
        right = (batch.parts[self.part] > self.right) & ~demonstrations(batch)
        return group_ops.sum(right.to(batch.reward), batch.group) < self.enough


@piece
class Able(Stuck):
    """Rollouts (R,) of the other groups: `enough` of the own rollouts are right, or more.

    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of([0, 1], parts={"correct": [1.0, 0.0]}, seen={"sampled": [[1.0], [1.0]]})
    >>> Able()(batch).tolist()
    [True, False]
    """

    def __call__(self, batch: Batch) -> Bool[Tensor, "R"]:
        return ~super().__call__(batch)


@piece
class EachSource:
    """Own actions and demonstrated ones weighed as if the others were not there, and both kept.

    >>> from grupo.testing.batches import batch_of
    >>> from grupo.algo.aggregation import token_mean
    >>> batch = batch_of(group=[0, 0, 0], seen={"sampled": [[1.0], [1.0], [0.0]]})
    >>> EachSource(token_mean)(batch).flatten().tolist()
    [0.5, 0.5, 1.0]
    """

    weigh: Callable[[Batch], Tensor]

    @property
    def needs(self) -> frozenset[str]:
        """It reads who drew what."""
        return SAMPLED

    def __call__(self, batch: Batch) -> PerAction:
        own = drawn(batch)
        sources = (batch.mask & own, batch.mask & ~own)
        mine, theirs = (self.weigh(replace(batch, mask=mask)) for mask in sources)
        return mine + theirs
