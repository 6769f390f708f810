"""ARRoL: prune rollouts early until half are correct. Xu et al., 2026, arXiv:2603.24840."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.calibration_counts import CountByBin
from grupo.algo.losses import Clip
from grupo.algo.losses.critic import QualityLoss
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.schedules import Switch
from grupo.method import Method
from grupo.rollouts.samplers import BetaBins, EarlyPruning


def arrol(
    group_size: PositiveInt = 16,
    keep_fraction: Fraction = 0.5,
    prune_at: PositiveInt = 512,
    max_new_tokens_after: PositiveInt = 16384,
    always_keep: PositiveInt = 2,
    warmup_fraction: Fraction = 0.1,
    clip_eps: NonNegative = 0.2,
) -> Method:
    """GRPO on the rollouts that are continued after prune_at tokens.

    The first always_keep rollouts are continued. Of the others, keep_fraction: those of highest and
    of lowest p, as many of either as minimise |sum p - half their number|. p = (s_b + 1) / (n_b +
    2): s_b of n_b earlier rollouts in the bin b of h were correct, older steps times 0.9. h is the
    sigmoid of a linear head on the hidden state, trained with -r log h - (1 - r) log(1 - h) on the
    continued rollouts.

    Args:
        group_size: rollouts per task before pruning (our choice).
        keep_fraction: fraction of the other rollouts that are continued (our choice).
        prune_at: length at which rollouts are scored, in tokens (paper: 512).
        max_new_tokens_after: limit of a continuation, in tokens (our choice).
        always_keep: first rollouts of a group, which are always continued (our choice).
        warmup_fraction: fraction of the run without pruning (our choice).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (our choice).
    """
    posterior = BetaBins.from_history(10, 0.9)
    fraction = Switch(warmup_fraction, 1.0, keep_fraction)
    return Method(
        sampler=EarlyPruning(
            group_size, fraction, prune_at, max_new_tokens_after, always_keep, posterior
        ),
        advantage=chain(CountByBin(len(posterior.bins)), Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps) + QualityLoss(),
    )


PAPER = Paper(
    title="Prune as You Generate: Online Rollout Pruning for Faster and Better RLVR",
    use="Generation dominates the cost, and the beginning of an answer predicts its outcome.",
    tags=("filtering",),
    checked=("golden", "properties", "run"),
    catalogue=("arrol",),
    source=Source("abstract", "the abstract and public summaries; Hsu1023/ARRoL has no code"),
    plan="not stated in any source that was opened; one update per step",
    missing=("Votes weighted by h at test time.", "ARRoL on DAPO."),
    deviations=(
        "The choice of the subset, the constants of the posterior and the warm-up are ours. So are"
        " the group, the fraction that is continued, the clip and the mean over answers.",
        "The head's cross-entropy shares one average with the policy's loss: our reading, which no"
        " source states.",
        (
            "The quality head is linear; a summary of the paper has a perceptron on the last "
            "hidden state."
        ),
    ),
    audit=(
        "compared with the abstract and with the catalogue's row; the repository was opened and "
        "has a README only"
    ),
    shown=(
        "tests/methods/test_arrol_balance.py"
        "::test_survivors_have_more_variance_and_balance_than_a_random_subset",
        "docs/comparisons/samplers.md#summary",
    ),
)
