"""JustGRPO: GRPO on a diffusion model, left to right. Ni et al., 2026, arXiv:2601.15165."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import ConstantLength
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="The Flexibility Trap: Why Arbitrary Order Limits Reasoning Potential in Diffusion "
    "Language Models",
    use="A masked diffusion model with exact likelihoods, at one forward pass per token of an "
    "answer.",
    tags=("diffusion",),
    checked=("golden", "properties", "run"),
    example="justgrpo(max_length=256)",
    catalogue=("justgrpo",),
)


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
    # LeapLabTHU/JustGRPO, grpo.py: max_length is gen_length, and the loss is divided by the
    # fraction of answers with A != 0, on each device; dropping groups of equal rewards has the same
    # effect on the others. The code also trains on tokens after the end token; here none are
    # sampled there.
    return Method(
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        advantage=chain(Center(), ScaleByStd(eps=1e-4)),
        loss=Clip(clip_eps, clip_eps),
        aggregation=ConstantLength(max_length),
    )
