"""PRIME: a reward for every token out of an outcome model. Cui et al., 2025, arXiv:2502.01456."""

from torch import Tensor

from grupo.algo.advantages import Center, chain
from grupo.algo.advantages.token_table import discounted, lay_out, line_up, total
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, spread
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Process Reinforcement through Implicit Rewards",
    use="Outcomes are too sparse, and a model trained on outcomes is there, or cheap to have.",
    verl="the recipe prime: adv_estimator='rloo', reward_dpo_coef=reward_gt_coef=5; whitens A",
    checked=("golden", "laws", "reference", "run"),
)


@piece
class ImplicitRewards:
    """x + sum over s >= t of gamma^(s - t) (r_s - mean over the others of their mean r).

    r_t = beta (log pi_prm - log pi_ref), which an outcome model implies; means are over actions.
    """

    beta: float
    gamma: float = 1.0
    model: str = "prm"

    @property
    def needs(self) -> frozenset[str]:
        """The reward model and its reference."""
        return frozenset({f"logp@{self.model}", "logp@ref"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        r = self.beta * (batch.seen[f"logp@{self.model}"] - batch.seen["logp@ref"])
        mean = total(r, batch).to(x) / batch.lengths.clamp(min=1)
        others = spread(group_ops.mean_of_others(mean, batch.group), batch)
        returns = discounted(line_up(r - others, batch), self.gamma)
        return spread(x, batch) + lay_out(returns, batch)


def prime(group: int = 4, beta: float = 0.05, coef: float = 5.0, clip: float = 0.2) -> Method:
    """A_t = (r - mean of the others) + `coef` times the same of the implicit rewards still to come.

    Implicit reward of a token: `beta` (log pi_prm - log pi_ref), of a model "prm" trained by
    `implicit_prm`.
    """
    # `coef`, `beta`, gamma = 1: those of PRIME-RL/PRIME (run_prime_main.sh). Its code adds
    # (r_t - mean of the rollout's own r) / (K - 1), and whitens A; here the paper's formula. It
    # also trains the model on each step's rollouts; here it stays what it is.
    credit = chain(Center(group_ops.mean_of_others), ImplicitRewards(beta * coef))
    return Method(sample=Independent(group), credit=credit, loss=Clip(clip, clip), weigh=token_mean)
