"""GRPO: the mean of its group is a rollout's baseline. Shao et al., 2024, arXiv:2402.03300."""

from grupo.algo.losses import KL, Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def grpo(
    group_size: PositiveInt = 8, clip_eps: NonNegative = 0.2, kl_coef: NonNegative = 0.04
) -> Method:
    """A = (r - mean(r)) / std(r) over the group, one advantage for all tokens of an answer.

    loss = mean over answers of mean over tokens of
      -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A) + kl_coef k3
    with R = pi / old and k3 = ref / pi - log(ref / pi) - 1 (eq. 3 and 4).

    Args:
        group_size: rollouts per task (our choice; the paper samples 64).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (PPO's value; the paper gives
            none).
        kl_coef: weight of the KL divergence from the reference policy (paper: 0.04).
    """
    loss = Clip(clip_eps, clip_eps) + kl_coef * KL()
    return Method(sampler=GroupSampler(group_size), loss=loss)


PAPER = Paper(
    title="DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models",
    use="Start here: every other method is described by what it changes against this one.",
    tags=("advantage", "clipping", "kl"),
    equals_grpo_when="policy and environment are the same",
    trl="loss_type='grpo', beta=0.04, epsilon=0.2 (its own default loss_type is 'dapo', beta 0; it "
    "adds 1e-4 to the deviation)",
    verl="adv_estimator='grpo', use_kl_loss=True, kl_loss_type='low_var_kl', "
    "loss_agg_mode='seq-mean-token-mean' (its default is 'token-mean': grpo_released)",
    checked=("golden", "properties", "reference", "run", "one-file example"),
    source=Source("paper", "eq. 3 and 4, sections 4.1.2 and 4.2"),
    plan=(
        "section 4.2: batch 1,024, 64 outputs per question, a single update after each "
        "exploration stage"
    ),
    missing=(
        (
            "Process supervision (section 4.1.3) and iterative training with a new reward model"
            " (4.1.4)."
        ),
    ),
    deviations=(
        (
            "The standard deviation is by n - 1, with 1e-6 added: the paper does not define it; "
            "torch and the common implementations have n - 1."
        ),
        "clip_eps is PPO's 0.2 and group_size 8: the paper gives no clip and samples 64.",
    ),
    audit=(
        "arithmetic compared with TRL 1.16 and verl 0.9.1 in an earlier audit (848 cases "
        "over all methods); equations, advantage, KL weight and plan compared with the text of "
        "sections 4.1 and 4.2"
    ),
    shown=("docs/quickstart.md#results",),
)
