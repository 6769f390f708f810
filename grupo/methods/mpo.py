"""MPO: preference, quality and generation losses together. Wang et al., 2024, arXiv:2411.10442."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import (
    BatchMeanShift,
    ChosenNLL,
    LabelledScore,
    Logistic,
    LogRatio,
    NegatedLogistic,
    Preference,
)
from grupo.core.numbers import NonNegative, Positive
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import PreferencePairs


def mpo(
    beta: Positive = 0.1,
    preference_coef: NonNegative = 0.8,
    quality_coef: NonNegative = 0.2,
    generation_coef: NonNegative = 1.0,
) -> Method:
    """loss = c_p DPO + c_q BCO - c_g log pi(chosen) / |chosen|, a mean over pairs.

    DPO = -log sigmoid(beta (h(chosen) - h(rejected))), h = log(pi / pi_ref), compares answers.
    BCO = -log sigmoid(beta (h(chosen) - d)) - log sigmoid(beta (d - h(rejected))) classifies each
    alone, with d half the sum of the mean h of chosen and of rejected answers.

    Args:
        beta: inverse temperature of both.
        preference_coef: c_p, weight of DPO (authors' scripts: 0.8).
        quality_coef: c_q, weight of BCO (authors' scripts: 0.2).
        generation_coef: c_g, weight of the likelihood (authors' scripts: 1).
    """
    dpo = Preference(LogRatio(), Logistic(beta))
    bco = LabelledScore(LogRatio(), Logistic(beta), NegatedLogistic(beta), BatchMeanShift())
    return Method(
        sampler=PreferencePairs(),
        advantage=identity,
        loss=preference_coef * dpo + quality_coef * bco + generation_coef * ChosenNLL(),
        aggregation=group_mean,
    )


PAPER = Paper(
    title=(
        "Enhancing the Reasoning Ability of Multimodal Large Language Models via Mixed Preference "
        "Optimization"
    ),
    use="Pairs exist, and DPO alone makes reasoning worse.",
    tags=("preferences", "multimodal", "sft"),
    trl="DPOConfig(loss_type=['sigmoid', 'bco_pair', 'sft'], loss_weights=[0.8, 0.2, 1.0]); the "
    "shift of its bco_pair is 0",
    checked=("golden", "properties", "run"),
    source=Source(
        "code",
        "OpenGVLab/InternVL: internvl_chat/shell/internvl2.0_mpo/preference_optimization/ "
        "(loss_type sigmoid,bco_pair with their weights, rpo_alpha) and "
        "internvl_chat/internvl/train/trainer_dpo.py",
    ),
    plan=(
        "the scripts: one pass over the pairs in batches of 256, one update each; prompts_per_step "
        "is the batch"
    ),
    deviations=(
        "The shift of BCO is the mean of the batch; the trainer's is a running mean over batches.",
        "beta 0.1 is TRL's default, which the scripts leave.",
    ),
    audit=(
        "weights and the sum of the three losses compared with the script and trainer_dpo.py; its "
        "parts are dpo and bco"
    ),
)
