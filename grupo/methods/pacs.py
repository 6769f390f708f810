"""PACS: classifies correct answers by their log-ratios. Li et al., 2025, arXiv:2509.02522."""

from torch.nn.functional import binary_cross_entropy_with_logits

from grupo.algo.advantages import identity
from grupo.algo.aggregation import rollout_mean
from grupo.algo.losses import Loss
from grupo.algo.losses.contrastive import is_success, rollout_log_ratio
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def pacs(group_size: PositiveInt = 8, log_ratio_scale: Positive = 1.0) -> Method:
    """loss = mean over answers of w BCE(sigmoid(psi), y), y = 1 where the reward is positive.

    psi_i = rho_i - mean of the others' rho, rho = log_ratio_scale (log pi - log pi_old) of a whole
    answer; gradients flow through all of them. w = G / (2 x size of the class), 1 where all have
    one label.

    A step has 4 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' script: 8).
        log_ratio_scale: factor of the log-ratio (beta in the paper) (authors' script: 1.0).
    """
    # A question's group lies in one micro-batch of the release, too.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=identity,
        loss=ClassificationLoss(log_ratio_scale),
        aggregation=rollout_mean,
        updates=Updates(minibatches=4),
    )


@component
class ClassificationLoss(Loss):
    """w BCE(sigmoid(psi), correct), psi = log_ratio_scale (rho - the others' mean rho).

    w balances the two classes of a group.

    Args:
        log_ratio_scale: factor of the log-ratio (beta in the paper).
    """

    log_ratio_scale: NonNegative

    requires = Requires(coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        rho = self.log_ratio_scale * rollout_log_ratio(pi, batch)
        g = batch.group
        y = is_success(batch).to(rho)
        psi = rho - group_ops.leave_one_out_mean(rho, g)
        size = group_ops.count(y, g)
        successes = group_ops.sum(y, g)
        class_size = successes.where(y > 0, size - successes)
        w = (size / (2 * class_size)).where(class_size < size, 1.0)
        return broadcast_to_tokens(
            binary_cross_entropy_with_logits(psi, y, w, reduction="none"), batch
        )


PAPER = Paper(
    title="Implicit Actor Critic Coupling via a Supervised Learning Framework for RLVR",
    use="Rewards are 0 or 1, and one is much rarer than the other.",
    tags=("advantage",),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("pacs",),
    source=Source(
        "code",
        "ritzz-ai/PACS: src/pacs/pacs_core_algos.py, src/pacs/pacs_actor.py, "
        "scripts/pacs/pacs_beta_1.0.sh",
    ),
    plan="pacs_beta_1.0.sh: 1,024 prompts per step in minibatches of 256, 4 updates",
    missing=(
        (
            "The other log-ratios (mean log pi), baselines (z-score, none) and weights (one "
            "class alone)."
        ),
    ),
    deviations=(
        "The log-ratio runs over the tokens of an answer; the release sums it without the mask, so "
        "that positions behind the end enter.",
        "A label is whether the reward is positive; the release takes the score itself.",
    ),
    audit=(
        "log-ratio, leave-one-out mean, class weights, mean, constants and plan compared "
        "with pacs_core_algos.py, pacs_actor.py and the run script"
    ),
)
