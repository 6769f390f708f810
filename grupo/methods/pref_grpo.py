"""Pref-GRPO: win rates in place of scores too much alike. Wang et al., 2025, arXiv:2508.20751."""

from grupo.algo.advantages import Center, ClampAdvantage, ScaleByStd, UseRewardTerm, chain
from grupo.algo.losses import Clip
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Pref-GRPO: Pairwise Preference Reward-based GRPO for Stable Text-to-Image"
    " Reinforcement Learning",
    use="Scores of a group lie so close that dividing by their std makes noise of them.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("pref-grpo",),
)


def pref_grpo(group_size: int = 8, clip_eps: float = 1e-4, max_advantage: float = 5.0) -> Method:
    """A = (r - mean(r)) / std(r) of r = reward_terms["win_rate"], held within -+`max_advantage`; no KL.

    `rewards.tournament.WinRate` measures it, with G (G - 1) / 2 judgements a group. Actions are
    denoising steps.
    """
    # Group, clip and bound are those of the released FLUX run, which adds a CLIP score to the win
    # rate; that is one more part: EachPart(identity, (("win_rate", 0.4), ("clip", 0.6))).
    r = UseRewardTerm("win_rate")
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(r, Center(), ScaleByStd(), ClampAdvantage(-max_advantage, max_advantage)),
        loss=Clip(clip_eps, clip_eps),
    )
