"""PPL shaping: likely answers and late tokens count more. Deng et al., 2025, arXiv:2508.02260."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.intrinsic import MeanSignal
from grupo.algo.advantages.token_table import token_index
from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, PerRollout, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler


def ppl_position(
    group_size: PositiveInt = 8,
    perplexity_coef: NonNegative = 0.01,
    position_coef: Fraction = 0.1,
    max_resample_rounds: PositiveInt = 10,
) -> Method:
    """A' = (A + sign(A) b) (1 - perplexity_coef w), b a late bonus and w the log-perplexity.

    A = (r - mean(r)) / std(r) over groups with different rewards; neither changes its sign, and
    perplexity_coef = position_coef = 0 leaves it as it is.
    loss = mean over all tokens of -min(R A', clip(R, 0.8, 1.28) A') with R = pi / old.

    A step makes 16 updates, one on each of 16 minibatches.

    Args:
        group_size: rollouts per task (authors' scripts: 8).
        perplexity_coef: strength of the perplexity weight (authors' script: 0.01).
        position_coef: size of the position bonus (authors' script: 0.1).
        max_resample_rounds: most rounds of generation in a step (max_num_gen_batches of
            location.sh: 10; of low_ppl.sh: 5).
    """
    shaping = (PositionBonus(position_coef), PerplexityWeight(perplexity_coef))
    return Method(
        curriculum=DynamicSampling(ShuffledTasks(), max_resample_rounds),
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        advantage=chain(Center(), ScaleByStd(), *shaping),
        loss=Clip(0.2, 0.28),
        aggregation=token_mean,
        updates=Updates(minibatches=16),
    )


@component
class PositionBonus:
    """x + sign(x) min(position_coef sigmoid(slope (i / L - midpoint)), max_share |x|), (N, T).

    i is the token's number from 0, L the length of its answer.

    Args:
        position_coef: size of the bonus (gamma in the paper).
        slope: steepness of the bonus.
        midpoint: position of half the bonus.
        max_share: largest bonus as a fraction of |x|.
    """

    position_coef: Fraction
    slope: NumberOrSchedule = 15.0
    midpoint: NumberOrSchedule = 0.5
    max_share: Fraction = 0.5

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        A = broadcast_to_tokens(x, batch)
        position = token_index(batch) / batch.lengths.clamp(min=1)[batch.rollout, None]
        bonus = self.position_coef * torch.sigmoid(self.slope * (position - self.midpoint))
        return A + A.sign() * bonus.minimum(self.max_share * A.abs())


@component
class PerplexityWeight:
    """x clip(1 - perplexity_coef w, low, high), w the answer's log-perplexity within its group.

    w = (x - m) / s, m and s mean and population deviation of the group's log-perplexities without
    outliers; s is 1 where it is at most 1e-6.

    Args:
        perplexity_coef: strength of the weight (alpha in the paper).
        low: smallest factor.
        high: largest factor.
    """

    perplexity_coef: NumberOrSchedule
    low: NumberOrSchedule = 0.8
    high: NumberOrSchedule = 1.2

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        log_perplexity = MeanSignal(factor=-1.0)(batch.reward, batch)
        usual = is_no_outlier(log_perplexity, batch.group)
        distance = log_perplexity - group_ops.mean_where(usual, log_perplexity, batch.group)
        std = group_ops.mean_where(usual, distance**2, batch.group).sqrt()
        w = distance / std.where(std > 1e-6, 1.0)
        factor = (1 - self.perplexity_coef * w).clamp(self.low, self.high)
        return broadcast_to_tokens(x, batch) * broadcast_to_tokens(factor, batch)


def is_no_outlier(x: PerRollout, group: Tensor) -> Tensor:
    """True for values within 1.5 interquartile ranges of the quartiles of their group (Tukey).

    >>> is_no_outlier(torch.tensor([1.0, 2.0, 3.0, 9.0, 5.0]), torch.tensor([0, 0, 0, 0, 1]))
    tensor([ True,  True,  True, False,  True])
    """
    low, high = torch.empty_like(x), torch.empty_like(x)
    for label in group.unique():
        is_member = group == label
        q1, q3 = x[is_member].quantile(x.new_tensor([0.25, 0.75]))
        low[is_member], high[is_member] = q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1)
    return (low <= x) & (x <= high)


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
    plan="low_ppl.sh and location.sh: train batch 512, minibatch 32 prompts: 16 updates per step",
    missing=(
        "When to switch it on: the paper shapes from a checkpoint on the plateau of the entropy, "
        "and the code has the bonus in steps 201 to 299.",
        "The scripts' penalty on the last 1,024 tokens below the length limit, and reward -1 for a "
        "wrong answer.",
    ),
    deviations=(
        "Both weights act: the paper and the scripts try each alone. Set the other one to 0.",
        "The factor multiplies the advantage where low perplexity is to count more, as the paper "
        "means it; the code multiplies only where high perplexity is to, so low_ppl.sh trains "
        "without it.",
        "Groups of equal rewards are dropped, in the scripts those of equal accuracy.",
        "A round generates the missing groups only, in the scripts 3 x 512 prompts; after the last "
        "one a step trains on fewer groups, and the scripts end with an error.",
        "The mean is over the tokens of a minibatch, in the code over those of a micro-batch, "
        "which counts by its share of the answers.",
    ),
    audit=(
        "weights, bonus, filter, plan and constants compared with core_algos.py, ray_trainer.py "
        "and the scripts; of the paper only the abstract and public summaries could be opened"
    ),
)
