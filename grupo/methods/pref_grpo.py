"""Pref-GRPO: win rates replace scores that differ little. Wang et al., 2025, arXiv:2508.20751."""

from grupo.algo.advantages import Center, ClampAdvantage, ScaleByStd, UseRewardTerm, chain
from grupo.algo.losses import Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Pref-GRPO: Pairwise Preference Reward-based GRPO for Stable Text-to-Image"
    " Reinforcement Learning",
    use="Scores of a group are so close that dividing by their std turns them into noise.",
    tags=("preferences", "multimodal", "diffusion"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("pref-grpo",),
)


def pref_grpo(
    group_size: PositiveInt = 8, clip_eps: NonNegative = 1e-4, max_advantage: NonNegative = 5.0
) -> Method:
    """A = (r - mean(r)) / std(r) of the win rate r, clamped to +-max_advantage; no KL.

    Reward terms: "win_rate", by `rewards.tournament.WinRate`, with G (G - 1) / 2 comparisons a
    group. Actions are denoising steps.

    Args:
        group_size: rollouts per task (authors' code: 8).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (authors' code: 0.0001).
        max_advantage: advantages are clamped to [-max_advantage, max_advantage] (authors' code:
            5.0).
    """
    # The released FLUX run adds a CLIP score to the win rate: PerRewardTerm(identity, (("win_rate",
    # 0.4), ("clip", 0.6))).
    clamp = ClampAdvantage(-max_advantage, max_advantage)
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(UseRewardTerm("win_rate"), Center(), ScaleByStd(), clamp),
        loss=Clip(clip_eps, clip_eps),
    )
