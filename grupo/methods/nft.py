"""NFT: wrong answers train an implicit negative policy. Chen et al., 2025, arXiv:2505.18116."""

from grupo.algo import ratios
from grupo.algo.advantages import identity
from grupo.algo.aggregation import ConstantLength
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Loss
from grupo.algo.losses.contrastive import is_success
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def nft(group_size: PositiveInt = 16, max_length: PositiveInt = 1000) -> Method:
    """-log R for tokens of correct answers, -log of the implicit negative policy's R for wrong
    ones.

    R = pi / old, p the fraction of correct answers of the group: pi_neg = (old - p pi) / (1 - p).
    Both have weight 1 - p; token sums are divided by max_length. A positive reward means correct;
    at R = 1 the gradient is that of A = r - mean(r).

    A step has 16 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' script: 16).
        max_length: constant that token sums are divided by (authors' code: 1000).
    """
    return Method(
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        advantage=identity,
        loss=NegativeAwareLoss(),
        aggregation=ConstantLength(max_length),
        updates=Updates(minibatches=16),
    )


@component
class NegativeAwareLoss(Loss):
    """(1 - p) x -log R where correct, (1 - p) x -log max((1 - p R) / (1 - p), 1) where wrong.

    The maximum acts on the value; its gradient passes straight through. p is bounded to 0.02 and
    0.98, which acts in mixed groups of more than 50 rollouts alone.
    """

    requires = Requires(surrogate_gradient=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        correct = is_success(batch)
        p = group_ops.mean(correct.to(batch.reward), batch.group).clamp(0.02, 0.98)
        p = p[batch.rollout, None].to(pi.logp)
        log_r = ratios.token_log_ratio(pi, batch).clamp(max=10.0)
        negative = (1 - p * log_r.exp()) / (1 - p)
        negative = negative + (negative.clamp(min=1.0) - negative).detach()
        return (1 - p) * -log_r.where(correct[batch.rollout, None], negative.log())


PAPER = Paper(
    title="NFT: Bridging Supervised Learning and Reinforcement Learning in Math Reasoning",
    use="Supervised fine-tuning on correct answers is in place and wrong ones are thrown away.",
    tags=("sft", "filtering"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("nft",),
    source=Source("code", "NVlabs/NFT: dp_actor.py, train_7B.sh, README"),
    plan="train_7B.sh: 512 prompts per step in minibatches of 32, one epoch, 16 updates",
    missing=(
        (
            "The ratio of the whole answer (ratio_type sequence) and the other weights "
            "(normalize 0 and 2)."
        ),
        "Refilling after groups of equal accuracy are dropped, up to 10 generation batches.",
    ),
    deviations=(
        (
            "The mean is over answers: the release sums over them, which changes the scale of "
            "the gradient alone."
        ),
    ),
    audit=(
        "losses, both clamps, weight 1 - p, the constant 1000, filter and plan compared "
        "with dp_actor.py and train_7B.sh"
    ),
    shown=("docs/claims.md#modes",),
)
