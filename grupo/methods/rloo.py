"""RLOO: a rollout's baseline is the mean of the others. Ahmadian et al., 2024, arXiv:2402.14740."""

from torch import Tensor

from grupo import divergences, groups
from grupo.batch import Batch
from grupo.credit import Center, chain
from grupo.credit.actions import total
from grupo.losses import Reinforce
from grupo.method import Method
from grupo.paper import Paper
from grupo.piece import piece
from grupo.sampling import Independent
from grupo.weights import sequence_sum

PAPER = Paper(
    title="Back to Basics: Revisiting REINFORCE Style Optimization for Learning from Human "
    "Feedback in LLMs",
    use="You want an unbiased gradient, with no clip and no standard deviation to tune.",
    trl="RLOOTrainer (adds PPO's clip)",
    verl="adv_estimator='rloo' (a lone rollout gets A = r, ours 0) or 'rloo_vectorized' (0)",
    checked=("golden", "laws"),
)


@piece
class LessKL:
    """x - coefficient sum_t (log old - log other): k1 of the rollout off its reward."""

    coefficient: float
    other: str = "ref"

    @property
    def needs(self) -> frozenset[str]:
        """What the other policy says of the actions."""
        return frozenset({f"logp@{self.other}"})

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        k1 = divergences.k1(batch.old_logp, batch.seen[f"logp@{self.other}"])
        return x - self.coefficient * total(k1.to(x), batch)


def rloo(group: int = 4, kl: float = 0.03) -> Method:
    """A_i = R_i - mean of the other R_j, R = r - `kl` log(pi / ref) of the whole answer.

    loss = mean over answers of -A_i log pi(y_i), the answer being one action.
    """
    # 2 and 4 samples and a KL coefficient of 0.03 (0.1 for dialogue) are the paper's; 0 needs no
    # reference. One update per batch: the paper finds PPO's ratio and clip superfluous.
    center = Center(groups.mean_of_others)
    return Method(
        sample=Independent(group),
        credit=chain(LessKL(kl), center) if kl else center,
        loss=Reinforce(),
        weigh=sequence_sum,
    )
