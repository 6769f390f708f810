"""SofT-GRPO: trains soft thoughts sampled by Gumbel noise. Zheng et al., 2025, arXiv:2511.06411."""

from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def soft_grpo(
    group_size: PositiveInt = 8, clip_eps: NonNegative = 0.2, kl_coef: NonNegative = 0.001
) -> Method:
    """GRPO with k3 whose actions are both soft thoughts and tokens.

    The log-probability of a thought is that of the noise that yields its scores u: the mean over
    tokens with log p > -3 of -e - exp(-e), e = clamp(u - log p, -1.5, 3), u = log p_old + g. p is
    the policy's probability of a token, divided by the sum over the tokens that top-k and top-p
    keep.

    A step makes 2 updates, one on each of 2 minibatches.

    Args:
        group_size: rollouts per task (authors' script: 8).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy (authors' script: 0.001).
    """
    return Method(
        sampler=GroupSampler(group_size),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
        updates=Updates(minibatches=2),
    )


PAPER = Paper(
    title="SofT-GRPO: Surpassing Discrete-Token LLM Reinforcement Learning via "
    "Gumbel-Reparameterized Soft-Thinking Policy Optimization",
    use="Models that think in mixtures of tokens, `SoftThinkingLM`; other policies have GRPO.",
    tags=("exploration",),
    equals_grpo_when="policy and environment are the same",
    checked=("golden", "properties", "run"),
    catalogue=("soft-grpo",),
    source=Source(
        "code",
        (
            "zz1358m/SofT-GRPO-master, verl-0.4.x/verl/utils/torch_functional.py and "
            "SofT-GRPO-deepscaler-8k.sh"
        ),
    ),
    plan="SofT-GRPO-deepscaler-8k.sh: train batch 64, minibatch 32: 2 updates per step",
    missing=(
        "The variants with Dirichlet and Gaussian noise.",
        "The dual clip of 3 of the release.",
        "The top-p of 0.95 and top-k of 5 with which the script samples the tokens of an answer.",
    ),
    deviations=(
        (
            "Rows count equally, as in GRPO; the released code averages over the tokens of a "
            "micro-batch of 2 rollouts."
        ),
        (
            "The gradient enters the embedding matrix through the mixed embeddings; the released "
            "code detaches them (dp_actor.py:210)."
        ),
        (
            "p is normalised over the tokens that top-p keeps; the released code normalises over "
            "all k tokens, also those cut by top-p, and adds 1e-6."
        ),
    ),
    audit=(
        "log-probability of a thought, KL weight and batch sizes compared with "
        "logprobs_from_logits_topk_gumbel and the script"
    ),
)
