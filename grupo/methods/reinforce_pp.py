"""REINFORCE++: KL in the reward, whitened over the batch. Hu et al., 2025, arXiv:2501.03262."""

from torch import Tensor

from grupo.algo import divergences
from grupo.algo.advantages import Whiten, chain
from grupo.algo.advantages.token_table import at_end, discounted, lay_out, line_up
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core.batch import Batch, PerAction
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="REINFORCE++: Stabilizing Critic-Free Policy Optimization with Global Advantage "
    "Normalization",
    use="Prompts are many and varied, and there is one rollout of each.",
    verl="adv_estimator='reinforce_plus_plus', use_kl_in_reward=True",
    checked=("golden", "laws", "reference", "run"),
)


@piece
class ReturnLessKL:
    """G_t = r_t + gamma G_(t+1): -kl (log old - log ref) of each action, the reward at the last."""

    kl: float
    gamma: float = 1.0

    @property
    def needs(self) -> frozenset[str]:
        """What the reference says of the actions."""
        return frozenset({"logp@ref"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        k1 = divergences.k1(batch.old_logp, batch.seen["logp@ref"])
        paid = at_end(x.to(batch.reward), batch) - self.kl * k1
        return lay_out(discounted(line_up(paid, batch), self.gamma), batch)


def reinforce_pp(group: int = 1, kl: float = 0.01, clip: float = 0.2) -> Method:
    """A_t = whiten(G_t) over all tokens of the batch, G_t = r - `kl` sum_(s >= t) log(old / ref).

    loss = mean over tokens of -min(R A, clip(R, 1 - `clip`, 1 + `clip`) A), R = pi / old.
    """
    # One answer per prompt is the paper's general form; `kl` is the default of the authors'
    # OpenRLHF. 0 needs no reference.
    return Method(
        sample=Independent(group),
        credit=chain(ReturnLessKL(kl), Whiten()) if kl else Whiten(),
        loss=Clip(clip, clip),
        weigh=token_mean,
    )
