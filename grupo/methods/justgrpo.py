"""JustGRPO: a diffusion model learns from left to right. Ni et al., 2026, arXiv:2601.15165."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import ConstantLength
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="The Flexibility Trap: Why Arbitrary Order Limits Reasoning Potential in Diffusion "
    "Language Models",
    use="A masked diffusion model, exact likelihoods, and a text read for each token of an answer.",
    checked=("golden", "laws", "run"),
    example="justgrpo(max_length=256)",
    catalogue=("justgrpo",),
)


def justgrpo(max_length: int, group_size: int = 16, clip_eps: float = 0.2) -> Method:
    """GRPO: A = (r - mean(r)) / (std(r) + 1e-4), and every token over one constant `max_length`.

    loss = mean over the answers of informative groups of 1 / `max_length` times the sum over tokens of
           -min(R A, clip(R, 1 - `clip_eps`, 1 + `clip_eps`) A).

    It needs a policy that draws from left to right and says log pi(o_t | q, o_<t), all later places
    masked, MaskedDiffusion(order=LeftToRight(), estimate=Autoregressive()): then a sequence has a
    likelihood, exact, and this is GRPO as it is. Other orders pass over the tokens that are forks.
    """
    # LeapLabTHU/JustGRPO, grpo.py: `max_length` is gen_length, and the loss is divided by the share of
    # answers with A != 0, on each device; to drop groups whose rewards are all one does the same to
    # those left. The code learns what follows an end token too; here nothing is drawn there.
    return Method(
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        advantage=chain(Center(), ScaleByStd(eps=1e-4)),
        loss=Clip(clip_eps, clip_eps),
        aggregation=ConstantLength(max_length),
    )
