"""TLDR: one policy for short, medium and long reasoning. Zhang et al., 2025, arXiv:2505.07961."""

from torch import Tensor

from grupo.algo.advantages import ByRewardTerm, Center, GroupedBy, ScaleByStd, chain
from grupo.algo.advantages.reward_shaping import value_for_label
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupPart, SplitGroup
from grupo.util.errors import ConfigError

INSTRUCTIONS = ("\n\nReason briefly.", "\n\nReason at medium length.", "\n\nReason at length.")


def tldr(
    max_length: PositiveInt,
    group_size: PositiveInt = 12,
    length_coefs: tuple[NonNegative, ...] = (0.5, 0.25, 0.0),
    instructions: tuple[str, ...] = INSTRUCTIONS,
) -> Method:
    """r' = r (1 - p L / max_length), p the length penalty of the level; A among equal levels.

    Equal parts of a group have the instruction of one level each at the end of the prompt; the
    reward term "level" is its number from 0. Rewards must not be negative.

    Args:
        max_length: length limit of an answer, in tokens.
        group_size: rollouts per task, a multiple of the number of levels (our choice).
        length_coefs: length penalty of each level (our choice).
        instructions: text at the end of the prompt for each level (our choice).
    """
    if len(instructions) != len(length_coefs):
        raise ConfigError(
            f"tldr.instructions: {len(instructions)} texts. Allowed: {len(length_coefs)}, one for"
            " each of length_coefs."
        )
    levels = tuple(GroupPart(float(i), prompt_suffix=text) for i, text in enumerate(instructions))
    per_level = GroupedBy(chain(Center(), ScaleByStd()), ByRewardTerm("level"))
    return Method(
        sampler=SplitGroup(group_size, parts=levels, reward_term="level"),
        advantage=chain(LevelLengthPenalty(max_length, length_coefs), per_level),
    )


@component
class LevelLengthPenalty:
    """x (1 - length_coefs[level] min(1, L / max_length)): short wrong answers earn nothing.

    Args:
        max_length: length limit of an answer, in tokens.
        length_coefs: length penalty of each level.
        level_term: reward term with the level that the prompt states.
    """

    max_length: PositiveInt
    length_coefs: tuple[NumberOrSchedule, ...]
    level_term: str = "level"

    @property
    def requires(self) -> Requires:
        # the level is an index of `length_coefs`
        return Requires(reward_terms=(self.level_term,), bounded_rewards=(self.level_term,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        length = (batch.lengths / self.max_length).clamp(max=1)
        coef = value_for_label(self.length_coefs, batch.reward_terms[self.level_term])
        return x * (1 - coef * length)


PAPER = Paper(
    title="Making Small Language Models Efficient Reasoners: Intervention, Supervision,"
    " Reinforcement",
    use="A small model reasons at length, and the prompt should set the length.",
    tags=("length", "reward"),
    checked=("golden", "properties", "run"),
    example="tldr(max_length=64)",
    catalogue=("tldr-length",),
    source=Source("abstract", "length-regularised GRPO on several levels of reasoning length"),
    plan="Not stated in the abstract; one update per step.",
    missing=("The temperature scaling of the same paper, which controls where thinking stops.",),
    deviations=(
        "The penalty's form, r (1 - length_coef L / max_length), its coefficients and the"
        " instructions are our reading: no source that could be opened states any of them.",
        "The comparison of rollouts of one level alone is our reading too.",
        "The clip of 0.2, the mean over answers and no KL divergence are our choice.",
    ),
    audit="Formula compared with the catalogue's row and the file's own account; no document but"
    " the abstract could be opened.",
)
