"""Implicit PRM: outcome labels train a token reward. Yuan et al., 2024, arXiv:2412.01981."""

from torch.nn.functional import softplus

from grupo.algo.advantages import identity
from grupo.algo.aggregation import rollout_mean
from grupo.algo.losses import Loss
from grupo.algo.losses.contrastive import sum_per_rollout
from grupo.core.batch import Batch, PerAction, Signals, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def implicit_prm(group_size: PositiveInt = 8, log_ratio_scale: Positive = 0.05) -> Method:
    """loss = cross-entropy of sigmoid(R) with correctness, R = log_ratio_scale log(pi(y) /
    pi_ref(y)).

    The trained model is a reward model, not a policy to sample from: r_t = log_ratio_scale log(pi /
    pi_ref) is its reward of token t, which `prime` reads as "logp@prm".

    Args:
        group_size: rollouts per task (our choice).
        log_ratio_scale: factor of the log-ratio (beta in the paper) (paper: 0.05).
    """
    loss = OutcomeCrossEntropy(log_ratio_scale)
    return Method(
        sampler=GroupSampler(group_size), advantage=identity, loss=loss, aggregation=rollout_mean
    )


@component
class OutcomeCrossEntropy(Loss):
    """Cross-entropy of sigmoid(R) with the label l: softplus(R) - l R.

    R = log_ratio_scale log(pi(y) / pi_ref(y)), broadcast to all tokens of y; l is 1 where y is
    correct.

    Args:
        log_ratio_scale: factor of the log-ratio (beta in the paper).
        reward_term: reward term that holds the label.
    """

    log_ratio_scale: NonNegative
    reward_term: str = "correct"

    @property
    def requires(self) -> Requires:
        # a rollout may have several rows
        return Requires(signals=("logp@ref",), reward_terms=(self.reward_term,), coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        R = self.log_ratio_scale * sum_per_rollout(pi.logp - batch.signals["logp@ref"], batch)
        return broadcast_to_tokens(
            softplus(R) - batch.reward_terms[self.reward_term].to(R) * R, batch
        )


PAPER = Paper(
    title="Free Process Rewards without Process Labels",
    use="Trains the reward model that PRIME reads, from correctness labels alone.",
    tags=("process-reward",),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("implicit-prm",),
    source=Source(
        "code",
        "PRIME-RL/ImplicitPRM: train/tasks/run_ce.sh and train/openrlhf/trainer/ce_trainer.py",
    ),
    plan=(
        "run_ce.sh: one epoch over fixed data in batches of 64, one update for each; here "
        "one update per step"
    ),
    missing=(
        "The other losses: DPO (run_dpo.sh), KTO and NCA.",
        "Best-of-N selection by the minimum of step rewards.",
    ),
    deviations=(
        (
            "Training data are sampled by the model of each step: the authors train on answers "
            "of the initial model, so take few steps."
        ),
    ),
    audit="beta, epoch and batch size compared with run_ce.sh; the loss with ce_trainer.py",
)
