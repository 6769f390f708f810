"""JustGRPO: GRPO on a diffusion model, left to right. Ni et al., 2026, arXiv:2601.15165."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import ConstantLength
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def justgrpo(
    max_length: PositiveInt, group_size: PositiveInt = 16, clip_eps: NonNegative = 0.2
) -> Method:
    """GRPO with A = (r - mean(r)) / (std(r) + 1e-4) and token sums divided by max_length.

    loss = mean over the answers of informative groups of 1 / max_length times the sum over tokens
    of
      -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A).
    The policy must sample from left to right and compute log pi(o_t | q, o_<t) with all later
    positions masked, MaskedDiffusion(order=LeftToRight(), estimate=Autoregressive()): then a
    sequence has an exact likelihood. Other orders postpone the forking tokens.

    Args:
        max_length: generation length, in tokens.
        group_size: rollouts per task (authors' code: 16).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    # max_length is gen_length of grpo.py
    return Method(
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        advantage=chain(Center(), ScaleByStd(eps=1e-4)),
        loss=Clip(clip_eps, clip_eps),
        aggregation=ConstantLength(max_length),
    )


PAPER = Paper(
    title="The Flexibility Trap: Why Arbitrary Order Limits Reasoning Potential in Diffusion "
    "Language Models",
    use="A masked diffusion model with exact likelihoods, at one forward pass per token of an "
    "answer.",
    tags=("diffusion",),
    checked=("golden", "properties", "run"),
    example="justgrpo(max_length=256)",
    catalogue=("justgrpo",),
    source=Source("code", "LeapLabTHU/JustGRPO: grpo.py, train.py"),
    plan="one update per step: the ratio in grpo.py is exp(logp - sg(logp))",
    missing=("Tokens after the end token, on which the code trains, too: none are sampled here.",),
    deviations=(
        (
            "Groups of equal rewards are dropped: the code divides the sum over answers by the "
            "number of those with A != 0, which has the same effect on the others."
        ),
        "The mean is over the answers of the step. The code has a mean for each of 8 accumulated "
        "batches (one task per device) and adds them up, so that each batch counts the same.",
    ),
    audit="advantage, clip, scale and the division by gen_length compared with grpo.py",
)
