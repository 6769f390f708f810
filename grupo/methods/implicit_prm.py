"""Implicit PRM: outcomes train a reward for every token. Yuan et al., 2024, arXiv:2412.01981."""

from torch.nn.functional import softplus

from grupo.algo.advantages import identity
from grupo.algo.aggregation import rollout_mean
from grupo.algo.losses import Loss
from grupo.algo.losses.contrastive import total
from grupo.core.batch import Batch, PerAction, Signals, spread
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Free Process Rewards without Process Labels",
    use="To make the reward model that PRIME reads, out of nothing but right and wrong answers.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("implicit-prm",),
)


@piece
class OutcomeCrossEntropy(Loss):
    """-l log sigmoid(R) - (1 - l) log(1 - sigmoid(R)) = softplus(R) - l R.

    R = beta log(pi(y) / pi_ref(y)), said at all actions of y; l is the part, 1 where y is right.
    """

    beta: float
    part: str = "correct"

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp@ref"})

    @property
    def reads_parts(self) -> tuple[str, ...]:
        """The label."""
        return (self.part,)

    @property
    def couples_rows(self) -> bool:
        return True  # a rollout may have several

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        R = self.beta * total(pi.logp - batch.seen["logp@ref"], batch)
        return spread(softplus(R) - batch.parts[self.part].to(R) * R, batch)


def implicit_prm(group: int = 8, beta: float = 0.05) -> Method:
    """loss = cross-entropy of sigmoid(R) with right or wrong, R = `beta` log(pi(y) / pi_ref(y)).

    What is trained is a reward model, not a policy to sample from: r_t = `beta` log(pi / pi_ref) is
    its reward of token t, which `prime` reads as logp@prm.
    """
    # The authors train on answers of the model they begin with: take few steps, for here each step
    # samples from what the last one made. Their other losses, DPO among them, are not here.
    loss = OutcomeCrossEntropy(beta)
    return Method(sample=Independent(group), credit=identity, loss=loss, weigh=rollout_mean)
