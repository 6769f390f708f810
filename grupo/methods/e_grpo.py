"""E-GRPO: wrong answers are paid for entities they found. Zhao et al., 2025, arXiv:2510.24694."""

import torch
from jaxtyping import Bool
from torch import Tensor

from grupo.algo.advantages import Center, MaskAdvantage, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def e_grpo(
    group_size: PositiveInt = 8,
    entity_coef: NonNegative = 0.3,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.28,
) -> Method:
    """A = (r - mean(r)) / std(r) with the rewards of `EntityReward`.

    Overlong rollouts count in mean and std but are not trained on. Reward terms: "correct",
    "entities" (the fraction that `grupo.rewards.similarity.entity_recall` finds in the reasoning,
    not in tool results), "format" and "overlong" (out of tokens or tool calls).

    Args:
        group_size: rollouts per task (paper: 8).
        entity_coef: largest reward of a wrong answer (paper: 0.3).
        clip_low: ratios are clipped below at 1 - clip_low (DAPO's value).
        clip_high: ratios are clipped above at 1 + clip_high (DAPO's value).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=MaskAdvantage(
            chain(EntityReward(entity_coef), Center(), ScaleByStd()), IsNotOverlong()
        ),
        loss=Clip(clip_low, clip_high),
        aggregation=token_mean,
    )


REWARD_TERMS = ("correct", "entities", "format", "overlong")


@component
class EntityReward:
    """r = 1 if correct, entity_coef m / max m if wrong, 0 if malformed or overlong.

    m is the fraction of known entities that a rollout found, max m the largest of its group.
    Source: eq. 3 and 5. All reward terms except "entities" are yes where above 1/2.

    Args:
        entity_coef: largest reward of a wrong answer.
    """

    entity_coef: NumberOrSchedule

    requires = Requires(reward_terms=REWARD_TERMS)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        right, m, good, overlong = (batch.reward_terms[name] for name in REWARD_TERMS)
        most = group_ops.max(m, batch.group)
        r = torch.where(right > 0.5, 1.0, self.entity_coef * m / torch.where(most > 0, most, 1.0))
        return r * ((good > 0.5) & (overlong <= 0.5))


@component
class IsNotOverlong:
    """Mask of the rollouts that were not cut off for length, (R,)."""

    requires = Requires(reward_terms=("overlong",))

    def __call__(self, batch: Batch) -> Bool[Tensor, "R"]:
        return batch.reward_terms["overlong"] <= 0.5


PAPER = Paper(
    title="Repurposing Synthetic Data for Fine-grained Search Agent Supervision",
    use="The questions were built from known entities, and most groups have no correct answer.",
    tags=("agents", "reward"),
    checked=("golden", "properties", "run"),
    catalogue=("e-grpo-entity",),
    source=Source(
        "paper",
        "version 2: eq. 3 to 6, the implementation details of section 3.2, appendix C",
    ),
    plan="appendix C: training batch of 64, PPO batch of 64: one update per step",
    missing=("The SFT stage before, of 11,000 examples.",),
    deviations=(
        "The paper uses clip-higher without its numbers: DAPO's are taken.",
        "The tokens of overlong rollouts count in the mean; the paper does not state whether.",
    ),
    audit=(
        "equations, constants and plan compared with the text of the paper; "
        "Alibaba-NLP/DeepResearch was opened and has no such code"
    ),
)
