"""GSPO-token: sequence ratio, per-token advantage. Zheng et al., 2025, arXiv:2507.18071."""

from grupo.algo import ratios
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def gspo_token(
    group_size: PositiveInt = 8, clip_low: NonNegative = 3e-4, clip_high: NonNegative = 4e-4
) -> Method:
    """loss = mean over answers and tokens of -min(s_t A_t, clip(s_t, 1 - clip_low, 1 + clip_high)
    A_t).

    s_t = sg(s) pi_t / sg(pi_t): the value of GSPO's s, the gradient of the token's own probability.
    With one advantage for all tokens of an answer it is GSPO.

    A step has 4 updates, each on a minibatch of its groups.

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


PAPER = Paper(
    title="Group Sequence Policy Optimization",
    use="GSPO where tokens or turns of one answer have different advantages.",
    tags=("importance-sampling", "clipping"),
    equals_grpo_when="there is one update per step",
    trl="experimental.gspo_token, importance_sampling_level='sequence_token'",
    verl="loss_mode='gspo'",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "third_party",
        "TRL, trl/experimental/gspo_token/grpo_trainer.py (sequence_token); section 5.1 as quoted "
        "in TRL's index of papers",
    ),
    plan=(
        "section 5.1 as quoted in TRL's index of papers: a rollout batch is split into four"
        " minibatches"
    ),
    deviations=(
        "group_size is our choice, 8: the paper's was in no source.",
        "All tokens of an answer have GRPO's advantage, as in TRL.",
    ),
    audit=(
        "clips and plan compared with TRL's index of papers; arithmetic compared with TRL "
        "1.16 and verl 0.9.1 in an earlier audit (848 cases over all methods)"
    ),
    shown=("docs/claims.md#reuse",),
)
