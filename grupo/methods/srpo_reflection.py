"""SRPO-Reflection: reflections are paid by their effect. Wan et al., 2025, arXiv:2506.01713."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def srpo_reflection(
    group_size: PositiveInt = 8,
    corrected_reward: NonNegative = 0.5,
    reflection_reward: NonNegative = 0.25,
    brevity_coef: NonNegative = 0.1,
) -> Method:
    """GRPO on a reward of the first answer, its format, the effect of the reflection, and the
    length.

    Reward terms: "first" and "correct" (the first and the last answer are correct), "format",
    "reflection" (a reflection and a second answer exist), "first_length" in tokens, 0 without a
    second.

    A step makes 8 updates, one on each of 8 minibatches.

    Args:
        group_size: rollouts per task (authors' OpenRLHF script: 8).
        corrected_reward: reward of a corrected answer (paper: 0.5).
        reflection_reward: reward of a reflection (paper: 0.25).
        brevity_coef: weight of the length (alpha in the release).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(
            ReflectionReward(corrected_reward, reflection_reward, brevity_coef),
            Center(),
            ScaleByStd(),
        ),
        updates=Updates(minibatches=8),
    )


REWARD_TERMS = ("first", "correct", "format", "reflection", "first_length")


@component
class ReflectionReward:
    """r = (format + first) / 2 + effect + reflection_reward [reflects] + brevity_coef e^-u^2 (eq. 4
    to 8).

    effect: correct twice 1/4, corrected `corrected_reward`, spoilt -1/4, wrong twice 0. u = |L - 2
    s| / (s / 2) with s the length of the first reasoning and answer.

    Args:
        corrected_reward: reward of a corrected answer.
        reflection_reward: reward of a reflection.
        brevity_coef: weight of the length (alpha in the release).
    """

    corrected_reward: NumberOrSchedule
    reflection_reward: NumberOrSchedule
    brevity_coef: NumberOrSchedule

    requires = Requires(reward_terms=REWARD_TERMS)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        terms = [batch.reward_terms[name] for name in REWARD_TERMS]
        first, last, form, reflects, s = terms
        correct = (last > 0.5).to(first)
        effect = torch.where(first > 0.5, correct / 2 - 0.25, self.corrected_reward * correct)
        u = (batch.lengths - 2 * s) / (s / 2).clamp(min=1e-9)
        brevity = torch.where(s > 0, torch.exp(-(u**2)), 0.0)
        reflection = (effect + self.reflection_reward) * (reflects > 0.5)
        return (form + first) / 2 + reflection + self.brevity_coef * brevity


PAPER = Paper(
    title="SRPO: Enhancing Multimodal LLM Reasoning via Reflection-Aware Reinforcement Learning",
    use="A model has learned to answer, reflect and answer again, and its reflections are empty.",
    tags=("reward", "multimodal"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("srpo-reflection",),
    source=Source(
        "paper",
        (
            "eq. 4 to 8; SUSTechBruce/SRPO_MLLMs, spro_rl_train/openrlhf_srpo/srpo_runs/scripts/"
            "srpo_reward_func.py and run_7b_sft_srpo_filter_data.sh, and "
            "spro_rl_train/verl_srpo/examples/config.yaml"
        ),
    ),
    plan=(
        "run_7b_sft_srpo_filter_data.sh: 128 prompts of 8 rollouts in batches of 128 rollouts: 8 "
        "updates. The README says that the paper's results are those of this OpenRLHF version; "
        "config.yaml of verl_srpo has 4 updates"
    ),
    missing=(
        "The SFT stage on reflections that a stronger model wrote.",
        (
            "The KL loss of 0.01 of config.yaml, and the accuracy filter, 0.1 to 0.9, of the "
            "OpenRLHF script, which updates once enough rollouts are left, over several steps."
        ),
        "The upper clip of 0.3 and the dual clip of 3, which are the defaults of verl_srpo.",
    ),
    deviations=(
        (
            "The OpenRLHF reward pays 1 for a corrected answer, more than for one correct twice, "
            "and nothing for a reflection's format: corrected_reward=1, reflection_reward=0. There "
            "a single answer has reward 0, and a wrong one 1 where it names the right letter alone."
        ),
        (
            "srpo_rm.py of verl_srpo is left aside: its chained comparisons pay 0 where one of the "
            "answers is correct and -0.25 where none is."
        ),
        (
            "Rows count equally, as in GRPO; verl_srpo averages over the tokens of a micro-batch "
            "of 4 rollouts. The loss of the OpenRLHF version is not in the repository."
        ),
    ),
    shown=("docs/vision_shown/landed_methods.md#srpo",),
    audit=(
        "reward compared with public notes that quote the paper's and with srpo_reward_func.py, "
        "batch sizes with config.yaml and run_7b_sft_srpo_filter_data.sh"
    ),
)
