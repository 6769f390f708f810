"""Rollouts that are given up on the way."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from grupo.core.aux_heads import Head
from grupo.core.component import piece, show
from grupo.core.controllers import Faded
from grupo.core.interfaces import Act, Env, opening, play, scored
from grupo.core.schedules import varying
from grupo.core.types import PRUNED, Group, Observation, Rollout, Task

QUALITY = Head("quality")  # its sigmoid is a score of how a rollout will end


@piece
class Bin:
    """Scores about alike: how many rollouts had one, and how many of them were right.

    >>> Bin(right=3.0, seen=4.0).p, Bin(right=0.0, seen=0.0).p
    (0.6666666666666666, 0.5)
    """

    right: float
    seen: float

    @property
    def p(self) -> float:
        """The mean of what is believed of the share of right ones, before it all anything."""
        return (self.right + 1) / (self.seen + 2)


@piece
class Posterior:
    """What scores in [0, 1] have come to, bin by bin."""

    bins: tuple[Bin, ...]

    @classmethod
    def following(cls, bins: int = 10, keep: float = 0.9) -> "Posterior":
        """As it was seen so far, a step counting `keep` times what the next one does."""
        pairs = (
            [varying(Faded(f"quality/{what}/{b}", keep)) for what in ("right", "seen")]
            for b in range(bins)
        )
        return cls(tuple(Bin(right, seen) for right, seen in pairs))

    def __call__(self, score: float) -> float:
        return self.bins[min(int(score * len(self.bins)), len(self.bins) - 1)].p

    def __repr__(self) -> str:
        match self.bins:
            case (Bin(seen=Faded(keep=keep)), *_):
                return f"Posterior.following({len(self.bins)}, {keep})"
        return f"Posterior(bins={show(self.bins)})"


@dataclass(frozen=True)
class _Begun:
    """A rollout as far as all go, and its score if it is to go on."""

    act: Act
    rollout: Rollout
    score: float = -1.0


@piece
class Pruned:
    """`n` rollouts, of which some are given up once they are `at` tokens long.

    Of those that come so far the first `spared` go on, and of the others the share `keep`, rounded
    up, of whom about half will be right: `balanced` by p, the `posterior` of their scores. They
    have up to `rest` tokens more. Who is given up has failed, by the name PRUNED, and is not
    judged. The part `quality` is the score, -1 where there is none, and the first action after it
    is marked `scored`.

    ARRoL, Xu et al. (arXiv:2603.24840).
    """

    n: int = 16
    keep: float = 0.5
    at: int = 512
    rest: int = 16384
    spared: int = 2
    posterior: Posterior = Posterior.following()
    helpers = (QUALITY,)
    gives = ("quality",)
    asks_helpers = True

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        seen = await opening(task, env)
        forks = map(act.fork, range(task.attempts or self.n))
        begun = await asyncio.gather(*(self._begun(fork, seen) for fork in forks))
        going = self.going([one.score for one in begun])
        plays = [self._played(task, env, begun[i]) for i in going]
        group = await scored(task, env, await asyncio.gather(*plays))
        told = [self._told(r, begun[i]) for r, i in zip(group.rollouts, going, strict=True)]
        left = [one for i, one in enumerate(begun) if i not in going]
        pruned = [replace(self._told(one.rollout, one), failed=PRUNED) for one in left]
        return replace(group, rollouts=(*told, *pruned))

    def going(self, scores: Sequence[float]) -> Sequence[int]:
        """Who goes on, of all those who began, by their scores; who ended before has -1."""
        p = {i: self.posterior(x) for i, x in enumerate(scores) if x >= 0 and i >= self.spared}
        chosen = balanced(p, math.ceil(self.keep * len(p) - 1e-9))
        return [i for i in range(len(scores)) if i not in p or i in chosen]

    async def _begun(self, act: Act, seen: Observation) -> _Begun:
        said = await act.until(limit=self.at)(Rollout(), seen)
        begun = Rollout().then(seen, said)
        if said.stopped != "length" or len(said.parts) < self.at:
            return _Begun(act, begun)
        logit = await act.foresee(begun, QUALITY.name)
        return _Begun(act, begun, 1 / (1 + math.exp(-max(-700.0, logit))))

    async def _played(self, task: Task, env: Env, begun: _Begun) -> Rollout:
        said = begun.rollout
        if begun.score >= 0:
            said = said.then("", await begun.act.until(limit=self.rest)(said, ""))
        return await play(task, env, begun.act, said)

    def _told(self, rollout: Rollout, begun: _Begun) -> Rollout:
        after = float(begun.score >= 0)
        marks = ((0.0,) * self.at + (after,) + (0.0,) * rollout.length)[: rollout.length]
        parts = {**rollout.parts, "quality": begun.score}
        return replace(rollout, parts=parts, marks={**rollout.marks, "scored": marks})


def balanced(p: Mapping[int, float], keep: int) -> frozenset[int]:
    """The `keep` of highest and lowest p, so many of each that they add up nearest to keep / 2.

    >>> sorted(balanced({0: 0.9, 1: 0.8, 2: 0.7, 3: 0.2, 4: 0.15, 5: 0.1}, 4))
    [0, 1, 4, 5]
    """
    order = sorted(p, key=lambda i: -p[i])
    splits = ((*order[:k], *order[len(p) - keep + k :]) for k in range(keep + 1))
    return frozenset(min(splits, key=lambda some: abs(sum(p[i] for i in some) - keep / 2)))
