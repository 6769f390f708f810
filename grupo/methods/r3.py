"""R3: old successes join groups that fail. Jiang et al., 2026, arXiv:2601.19620."""

import torch
from torch import Tensor

from grupo import groups
from grupo.batch import Batch
from grupo.credit import Center, ScaleByStd, chain
from grupo.credit.actions import total
from grupo.credit.ranking import RankedByEntropy
from grupo.curate import Replay
from grupo.losses import KL, Clip
from grupo.losses.sources import MOVED, elsewhere
from grupo.method import Method
from grupo.paper import Paper
from grupo.piece import piece
from grupo.sampling import Independent

PAPER = Paper(
    title="R^3: Replay, Reflection, and Ranking Rewards for LLM Reinforcement Learning",
    use="Groups agree with themselves, tasks come back, and answers are cut off.",
    checked=("golden", "laws", "run"),
    example="r3(limit=4)",
    catalogue=("r3-replay-reflect-rank",),
)


@piece
class Damped:
    """`alpha` x for rollouts that were drawn at an earlier step."""

    alpha: float
    needs = MOVED

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        old = total(elsewhere(batch).to(x), batch) > 0
        return torch.where(old, self.alpha * x, x)


def r3(
    limit: int, group: int = 8, replays: int = 1, alpha: float = 0.5, kl: float = 0.001
) -> Method:
    """GRPO whose groups stay mixed: `replays` right rollouts of the past join those all wrong.

    And wrong ones those all right. A = (r - mean(r)) / std(r) over old and new, std divided by n,
    times `alpha` where old; r is that and `RankedByEntropy` for who was cut off at `limit`. The
    ratio of an old rollout is against the policy that drew it. loss = clipped - A r + `kl` KL.
    """
    # Deviation: without self-reflection, whereby a task that mostly fails is asked a second time
    # with a wrong answer of its own shown. Where no right rollout is remembered, ranks pay; alpha,
    # kl, peak and best are our choice: neither they nor where alpha stands were seen.
    ranked = (RankedByEntropy(limit), Center(), ScaleByStd(std=groups.population_std))
    credit, loss = chain(*ranked, Damped(alpha)), Clip() + kl * KL()
    return Method(sample=Independent(group), curate=Replay(replays), credit=credit, loss=loss)
