"""BRPO: thinking is rewarded at every token budget. Qi et al., 2025, arXiv:2505.13438."""

from grupo.algo.advantages.budget_relative import BudgetRelativeAdvantage
from grupo.algo.aggregation import ConstantLength
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import AnytimeBudgets


def brpo(
    traces: PositiveInt = 8,
    token_budgets: tuple[PositiveInt, ...] = (2000, 4000, 6000, 8000),
    answers_per_budget: PositiveInt = 4,
    answer_tokens: PositiveInt = 118,
    prior: tuple[NonNegative, ...] = (1.0, 2.0, 3.0, 4.0),
    clip_eps: NonNegative = 0.2,
) -> Method:
    """A_s = ret_s - (s V1 + (S - s) V2) / S for the segment of thinking that ends at budget s < S.

    ret_s = sum_{j>=s} p_j R_j, R_j the mean reward of the answers at budget j; V2 is its mean over
    the traces; V1 = sum_{k<s} 2^k R_k / sum_{k<s} 2^k, times sum_{j>=s} p_j. Answers have
    A = r - mean(r) over those at the same cut. PPO's clip, token sums over one constant.

    A step makes 2 updates, one on each of 2 minibatches.

    Args:
        traces: thinking traces per task.
        token_budgets: lengths at which a trace is cut and answered, in tokens.
        answers_per_budget: answers sampled at each cut.
        answer_tokens: limit of an answer, in tokens.
        prior: p_j before normalisation (paper: proportional to the budgets; all 1 is uniform).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    answers_per_trace = len(token_budgets) * answers_per_budget
    return Method(
        sampler=AnytimeBudgets(traces, token_budgets, answers_per_budget, answer_tokens),
        advantage=BudgetRelativeAdvantage(prior, answers_per_budget),
        loss=Clip(clip_eps, clip_eps),
        aggregation=ConstantLength(max(1, token_budgets[-1] // answers_per_trace + answer_tokens)),
        updates=Updates(minibatches=2),
    )


PAPER = Paper(
    title="Optimizing Anytime Reasoning via Budget Relative Policy Optimization",
    use="Answers must be good wherever thinking is cut off.",
    tags=("length", "process-reward"),
    checked=("golden", "properties", "run"),
    catalogue=("brpo-anytime",),
    source=Source(
        "code",
        "sail-sg/AnytimeReasoner, verl/verl/trainer/ppo/brpo.py, run_experiments.sh and "
        "run_1.5b_8k.sh",
    ),
    plan="run_1.5b_8k.sh: train batch 64, minibatch 32 prompts: 2 updates per step",
    missing=("An answer that writes </think> once more counts as wrong in the release.",),
    deviations=(
        (
            "Token sums are divided by the largest length of a trace and its answers, 9,888 "
            "tokens; in the release by the padded length, 10,176."
        ),
        "The fork does not clamp the log-ratio, nor does the method.",
    ),
    audit=(
        "formulas compared with compute_cot_advantage and compute_summary_advantage of brpo.py, "
        "group, budgets, answers, prior and batch sizes with the scripts"
    ),
)
