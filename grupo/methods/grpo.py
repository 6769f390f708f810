"""GRPO: the mean of its group is a rollout's baseline. Shao et al., 2024, arXiv:2402.03300."""

from grupo.algo.losses import KL, Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models",
    use="Start here: every other method is described by what it changes against this one.",
    tags=("advantage", "clipping", "kl"),
    trl="loss_type='grpo', beta=0.04, epsilon=0.2 (its own default loss_type is 'dapo', beta 0; it "
    "adds 1e-4 to the deviation)",
    verl="adv_estimator='grpo', use_kl_loss=True, kl_loss_type='low_var_kl', "
    "loss_agg_mode='seq-mean-token-mean' (its default is 'token-mean': grpo_released)",
    checked=("golden", "properties", "reference", "run", "one-file example"),
)


def grpo(
    group_size: PositiveInt = 8, clip_eps: NonNegative = 0.2, kl_coef: NonNegative = 0.04
) -> Method:
    """A = (r - mean(r)) / std(r) over the group, one advantage for all tokens of an answer.

    loss = mean over answers of mean over tokens of
      -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A) + kl_coef k3
    with R = pi / old and k3 = ref / pi - log(ref / pi) - 1 (eq. 3 and 4).

    Args:
        group_size: rollouts per task (the paper samples 64).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (PPO's value; the paper gives
            none).
        kl_coef: weight of the KL divergence from the reference policy (paper: 0.04).
    """
    # The paper does not define the standard deviation: n - 1 is torch's and the common choice.
    loss = Clip(clip_eps, clip_eps) + kl_coef * KL()
    return Method(sampler=GroupSampler(group_size), loss=loss)
