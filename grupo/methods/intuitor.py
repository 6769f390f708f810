"""Intuitor: self-certainty is the only reward. Zhao et al., 2025, arXiv:2505.19590."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.intrinsic import MeanSignal
from grupo.algo.losses import KL, Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def intuitor(
    group_size: PositiveInt = 7, clip_eps: NonNegative = 0.2, kl_coef: NonNegative = 0.005
) -> Method:
    """A = (u - mean(u)) / std(u), u = 1 / L sum_t KL(U, pi(.|s_t)), U uniform over the vocabulary.

    KL(U, pi) = -1/|V| sum_v log(|V| pi(v)), which grows with the certainty of the policy.

    Args:
        group_size: rollouts per task (authors' 3B recipe: 7; math_intuitor.sh: 8).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy (authors' 3B recipe: 0.005).
    """
    # The released code omits log |V|, which cancels in A. u is measured on the current policy: a
    # fixed judge would be exploited.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(MeanSignal("self_certainty"), Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
    )


PAPER = Paper(
    title="Learning to Reason without External Rewards",
    use="No verifier exists, and the policy is more certain where it is correct.",
    tags=("unsupervised",),
    checked=("golden", "properties", "reference"),
    source=Source(
        "code",
        "sunblaze-ucb/Intuitor: verl-intuitor/verl/trainer/ppo/ray_trainer.py, "
        "math_intuitor.sh, open-r1-intuitor/recipes/Qwen2.5-3B/intuitor/config_demo.yaml",
    ),
    plan=(
        "one update per step: num_iterations 1 in config_demo.yaml; 128 prompts in one "
        "minibatch in math_intuitor.sh"
    ),
    missing=(
        "Values of the 7B recipe: 14 generations and a KL weight of 0.01.",
        "The dual clip of 3 of verl-intuitor, which never acts at one update per step.",
        "The temperature of 0.9 of the open-r1 recipes, the default of the TRL that they pin.",
    ),
    deviations=(
        "The mean is over answers, as GRPO's: both releases have one over the tokens of a "
        "micro-batch.",
        "u is that of verl-intuitor; open-r1 measures it one position later (after the end token, "
        "not before the first one) and at temperature 1.",
    ),
    audit=(
        "self-certainty (logsumexp minus mean of the logits), its mean per answer, group "
        "size, KL weight and plan compared with the code and both configurations"
    ),
    shown=("docs/claims.md#unlabelled",),
)
