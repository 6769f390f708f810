"""Implicit PRM: outcomes train a reward for every token. Yuan et al., 2024, arXiv:2412.01981."""

from torch.nn.functional import softplus

from grupo.algo.advantages import identity
from grupo.algo.aggregation import rollout_mean
from grupo.algo.losses import Loss
from grupo.algo.losses.contrastive import sum_per_rollout
from grupo.core.batch import Batch, PerAction, Signals, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Free Process Rewards without Process Labels",
    use="To make the reward model that PRIME reads, out of nothing but right and wrong answers.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("implicit-prm",),
)


@component
class OutcomeCrossEntropy(Loss):
    """-l log sigmoid(R) - (1 - l) log(1 - sigmoid(R)) = softplus(R) - l R.

    R = beta log(pi(y) / pi_ref(y)), said at all actions of y; l is the part, 1 where y is right.
    """

    log_ratio_scale: float
    reward_term: str = "correct"

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({"logp@ref"})

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """The label."""
        return (self.reward_term,)

    @property
    def couples_rows(self) -> bool:
        return True  # a rollout may have several

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        R = self.log_ratio_scale * sum_per_rollout(pi.logp - batch.signals["logp@ref"], batch)
        return broadcast_to_tokens(
            softplus(R) - batch.reward_terms[self.reward_term].to(R) * R, batch
        )


def implicit_prm(group_size: int = 8, log_ratio_scale: float = 0.05) -> Method:
    """loss = cross-entropy of sigmoid(R) with right or wrong, R = `log_ratio_scale` log(pi(y) / pi_ref(y)).

    What is trained is a reward model, not a policy to sample from: r_t = `log_ratio_scale` log(pi / pi_ref) is
    its reward of token t, which `prime` reads as logp@prm.
    """
    # The authors train on answers of the model they begin with: take few steps, for here each step
    # samples from what the last one made. Their other losses, DPO among them, are not here.
    loss = OutcomeCrossEntropy(log_ratio_scale)
    return Method(
        sampler=GroupSampler(group_size), advantage=identity, loss=loss, aggregation=rollout_mean
    )
