"""Pref-GRPO: win rates replace scores that differ little. Wang et al., 2025, arXiv:2508.20751."""

from grupo.algo.advantages import Center, ClampAdvantage, ScaleByStd, UseRewardTerm, chain
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def pref_grpo(
    group_size: PositiveInt = 8, clip_eps: NonNegative = 1e-4, max_advantage: NonNegative = 5.0
) -> Method:
    """A = (r - mean(r)) / std(r) of the win rate r, clamped to +-max_advantage; no KL.

    Reward terms: "win_rate", by `rewards.pairwise.PairwiseWinRate`, with G (G - 1) / 2 comparisons
    a group. Actions are denoising steps.

    A step makes 2 updates, one on each of 2 minibatches.

    Args:
        group_size: rollouts per task (authors' code: 8).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (authors' code: 0.0001).
        max_advantage: advantages are clamped to [-max_advantage, max_advantage] (authors' code:
            5.0).
    """
    # The released FLUX run adds the advantage of a CLIP score: PerRewardTerm(chain(Center(),
    # ScaleByStd()), (("win_rate", 0.4), ("clip", 0.6))).
    clamp = ClampAdvantage(-max_advantage, max_advantage)
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(UseRewardTerm("win_rate"), Center(), ScaleByStd(), clamp),
        loss=Clip(clip_eps, clip_eps),
        updates=Updates(minibatches=2),
    )


PAPER = Paper(
    title="Pref-GRPO: Pairwise Preference Reward-based GRPO for Stable Text-to-Image"
    " Reinforcement Learning",
    use="Scores of a group are so close that dividing by their std turns them into noise.",
    tags=("preferences", "multimodal", "diffusion"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("pref-grpo",),
    source=Source(
        "code",
        (
            "CodeGoat24/Pref-GRPO, scripts/full_train/ur_think_prefgrpo_flux.sh, "
            "scripts/_common_finetune.sh and fastvideo/train_flux.py"
        ),
    ),
    plan=(
        "_common_finetune.sh: an update after every 4 of the 8 rollouts of a task: 2 updates per "
        "step"
    ),
    missing=(
        "The advantage of a CLIP score, weighted 0.6 to 0.4 of the win rate in the FLUX run.",
        "The choice of 60 % of the denoising steps of each rollout (timestep_fraction).",
        "Normalised ratios (rationorm of _common_finetune.sh), with a loss that is divided by the"
        " size of a denoising step.",
        (
            "The advantages are whitened over the batch before they are clamped (apply_gdpo of "
            "_common_finetune.sh)."
        ),
        "The rollouts of a task start from the same noise (init_same_noise).",
    ),
    deviations=(
        (
            "An update is on all rollouts of half of the groups, there on half of the rollouts of "
            "each group."
        ),
        "The standard deviation gains 1e-6, in the release 1e-8.",
    ),
    audit=(
        "advantages, loss, constants and number of updates compared with train_flux.py, "
        "rewards/dispatcher.py and the script"
    ),
)
