"""GSPO-token: sequence ratio, per-token advantage. Zheng et al., 2025, arXiv:2507.18071."""

from grupo.algo import ratios
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Group Sequence Policy Optimization",
    use="GSPO where tokens or turns of one answer have different advantages.",
    tags=("importance-sampling", "clipping"),
    trl="experimental.gspo_token, importance_sampling_level='sequence_token'",
    verl="loss_mode='gspo'; ignores loss_agg_mode",
    checked=("golden", "properties", "reference", "run"),
)


def gspo_token(
    group_size: PositiveInt = 8, clip_low: NonNegative = 3e-4, clip_high: NonNegative = 4e-4
) -> Method:
    """loss = mean over answers and tokens of -min(s_t A_t, clip(s_t, 1 - clip_low, 1 + clip_high)
    A_t).

    s_t = sg(s) pi_t / sg(pi_t): the value of GSPO's s, the gradient of the token's own probability.
    With one advantage for all tokens of an answer it is GSPO.

    Args:
        group_size: rollouts per task (our choice).
        clip_low: s_t is clipped below at 1 - clip_low (paper: 0.0003).
        clip_high: s_t is clipped above at 1 + clip_high (paper: 0.0004).
    """
    # The advantage is GRPO's, for comparison; use another with .replace(advantage=...).
    return Method(
        sampler=GroupSampler(group_size),
        loss=Clip(clip_low, clip_high, ratios.SequenceTokenRatio()),
        updates=Updates(minibatches=4),
    )
