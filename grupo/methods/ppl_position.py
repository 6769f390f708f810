"""PPL shaping: likely answers and late tokens count more. Deng et al., 2025, arXiv:2508.02260."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, StandardiseBatch, chain
from grupo.algo.advantages.intrinsic import MeanSignal
from grupo.algo.advantages.token_table import token_index
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def ppl_position(
    group_size: PositiveInt = 8, perplexity_coef: NonNegative = 0.01, position_coef: Fraction = 0.1
) -> Method:
    """A' = A (1 - perplexity_coef w), then A' + sign(A') b, w the log-perplexity and b a late
    bonus.

    Neither changes a sign. perplexity_coef = position_coef = 0 is GRPO.

    Args:
        group_size: rollouts per task (authors' scripts: 8).
        perplexity_coef: strength of the perplexity weight (authors' script: 0.01).
        position_coef: size of the position bonus (authors' script: 0.1).
    """
    advantage = chain(
        Center(), ScaleByStd(), PerplexityWeight(perplexity_coef), PositionBonus(position_coef)
    )
    return Method(
        sampler=GroupSampler(group_size),
        advantage=advantage,
        loss=Clip(0.2, 0.2),
        aggregation=token_mean,
    )


@component
class PerplexityWeight:
    """x max(0, 1 - perplexity_coef w), w the log-perplexity standardised over the batch.

    Args:
        perplexity_coef: strength of the weight (alpha in the paper).
    """

    perplexity_coef: NumberOrSchedule

    requires = Requires(whole_batch=True)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        w = StandardiseBatch(std=group_ops.population_std)(MeanSignal(factor=-1.0)(x, batch), batch)
        return x * (1 - self.perplexity_coef * w).clamp(min=0)


@component
class PositionBonus:
    """x + sign(x) position_coef sigmoid(slope (l - midpoint)), l the token's position in [0, 1].

    Args:
        position_coef: size of the bonus (gamma in the paper).
        slope: steepness of the bonus.
        midpoint: position of half the bonus.
    """

    position_coef: Fraction
    slope: NumberOrSchedule = 10.0
    midpoint: NumberOrSchedule = 0.5

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        A = broadcast_to_tokens(x, batch)
        last = (batch.lengths - 1).clamp(min=1)[batch.rollout, None]
        bonus = self.position_coef * torch.sigmoid(
            self.slope * (token_index(batch) / last - self.midpoint)
        )
        return A + A.sign() * bonus


PAPER = Paper(
    title="Decomposing the Entropy-Performance Exchange: The Missing Keys to Unlocking Effective "
    "Reinforcement Learning",
    use="Entropy has stopped falling and accuracy has stopped rising.",
    tags=("advantage", "entropy"),
    checked=("golden", "properties", "run"),
    catalogue=("ppl-position-shaping",),
    source=Source(
        "code",
        "RUCAIBox/Slow_Thinking_with_LLMs, entropy2performance (the authors' later report, "
        "arXiv:2508.07534): calculate_ppl and compute_policy_loss in core_algos.py, "
        "ray_trainer.py, scripts/low_ppl.sh and location.sh",
    ),
    plan="our choice, one update per step; the scripts have a train batch of 512 and minibatches"
    " of 32 prompts, 16 updates",
    missing=(
        "When to switch it on: the paper shapes from a checkpoint on the plateau of the entropy, "
        "and the code has the bonus in steps 201 to 299.",
        "The scripts' filter of groups with equal accuracy, with new groups in their place.",
        "The scripts' penalty on the last 1,024 tokens below the length limit, and reward -1 for a "
        "wrong answer.",
    ),
    deviations=(
        "Both weights act: the paper and the scripts try each alone. Set the other one to 0.",
        "The log-perplexity is standardised over the batch; in the code within the group, with "
        "values beyond 1.5 interquartile ranges left out of the mean and the deviation.",
        "The factor of the advantage is at least 0; the code clamps it to [0.8, 1.2], and "
        "multiplies by it only where high perplexity is to count more, so low_ppl.sh trains "
        "without it.",
        "The slope of the bonus is 10, and a position runs from 0 to 1; the code has 15 and l - 1 "
        "over l at the end, and clamps the bonus to half of |A|.",
        "The clip is 0.2; the scripts have 0.2 and 0.28.",
    ),
    audit=(
        "weights, bonus and constants compared with core_algos.py and the scripts; of the paper "
        "only the abstract and public summaries could be opened"
    ),
)
