"""PACS: classify right answers, with log-ratios as logits. Li et al., 2025, arXiv:2509.02522."""

from torch.nn.functional import binary_cross_entropy_with_logits

from grupo.algo.advantages import identity
from grupo.algo.aggregation import rollout_mean
from grupo.algo.losses import Loss
from grupo.algo.losses.contrastive import log_ratio, right
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals, spread
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Implicit Actor Critic Coupling via a Supervised Learning Framework for RLVR",
    use="Rewards are right or wrong, and one is much rarer than the other.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("pacs",),
)


@piece
class Classify(Loss):
    """w BCE(sigmoid(psi), right), psi = `beta` (rho - the others' mean rho), w balances classes."""

    beta: float

    @property
    def couples_rows(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        rho, g = self.beta * log_ratio(pi, batch), batch.group
        y = right(batch).to(rho)
        psi = rho - group_ops.mean_of_others(rho, g)
        size, successes = group_ops.count(y, g), group_ops.sum(y, g)
        same = successes.where(y > 0, size - successes)
        w = (size / (2 * same)).where(same < size, 1.0)
        return spread(binary_cross_entropy_with_logits(psi, y, w, reduction="none"), batch)


def pacs(group: int = 8, beta: float = 1.0) -> Method:
    """loss = mean over answers of w BCE(psi, y): y = 1 where the reward is positive.

    psi_i = rho_i - mean of the others' rho, rho = `beta` (log pi - log pi_old) of a whole answer,
    and gradients flow through all of them. w = G / (2 x how many have the same label), 1 where all
    have it.
    """
    # As in the release at beta 1, whose group of a question lies in one micro-batch.
    return Method(
        sample=Independent(group), credit=identity, loss=Classify(beta), weigh=rollout_mean
    )
