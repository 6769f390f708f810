"""Ada-GRPO: rare answer formats earn more, on a schedule. Wu et al., 2025, arXiv:2505.20258."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.core.schedules import Cosine
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def ada_grpo(
    group_size: PositiveInt = 8, clip_eps: NonNegative = 0.2, kl_coef: NonNegative = 0.001
) -> Method:
    """r' = a r with a = 1 + (G / F - 1) (1 + cos(pi t / T)) / 2, from G / F down to 1 over the run.

    F of the group's G rollouts have the format of this one, which the reward term "mode" labels.
    A = (r' - mean(r')) / std(r').

    A step makes 6 updates, one on each of 6 minibatches.

    Args:
        group_size: rollouts per task.
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy.
    """
    loss = Clip(clip_eps, clip_eps) + kl_coef * KL()
    rarity = RarityScale(Cosine(1.0, 0.0))
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(rarity, Center(), ScaleByStd()),
        loss=loss,
        updates=Updates(minibatches=6),
    )


@component
class RarityScale:
    """x (1 + rarity_coef (G / F - 1)), F of the group's G rollouts have the same format.

    0 for rollouts with a negative format label.

    Args:
        rarity_coef: 1 scales by G / F, 0 not at all.
        reward_term: name of the reward term that labels the format.
    """

    rarity_coef: NumberOrSchedule
    reward_term: str = "mode"

    @property
    def requires(self) -> Requires:
        # label of the format; negative for an unknown one
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        mode = batch.reward_terms[self.reward_term]
        G = group_ops.count(x, batch.group)
        F = group_ops.count_equal(mode, batch.group)
        return x * (1 + self.rarity_coef * (G / F - 1)) * (mode >= 0)


PAPER = Paper(
    title="ARM: Adaptive Reasoning Model",
    use="A model has several formats of reasoning, and GRPO keeps only the longest.",
    tags=("length", "exploration", "reward"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("arm-ada-grpo",),
    source=Source(
        "code",
        "TEAM-ARM/ARM, verl/verl/trainer/ppo/core_algos.py and verl/stage2_scripts/trainer/run.sh",
    ),
    plan=(
        "stage2_scripts/trainer/run.sh: train batch 1024, minibatch 180 prompts: 6 updates per "
        "step, the last one on a smaller minibatch"
    ),
    missing=(
        "The SFT stage that teaches the four formats.",
        "The reward is left to the environment: the release's is 1 for a correct answer without "
        "tags of a second format, else 0.",
        "verl's clamp of k3 to +-10.",
    ),
    deviations=(
        "The minibatches have equal sizes, those of the release 180 prompts and a rest of 124. The"
        " loss of the rest is multiplied by 124 / 180 there.",
        (
            "The mean over answers is GRPO's; the release leaves verl's defaults on, a token mean "
            "of each micro-batch and an entropy bonus of 0.001."
        ),
    ),
    audit=(
        "scale, schedule and constants compared with compute_ada_grpo_outcome_advantage and the "
        "run script of the authors' verl fork"
    ),
)
