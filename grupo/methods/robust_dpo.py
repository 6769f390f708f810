"""Robust DPO: unbiased if pairs are flipped. Chowdhury et al., 2024, arXiv:2403.00409."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import LogRatio, Preference, RobustLogistic
from grupo.core.numbers import Fraction, Positive
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import PreferencePairs


def robust_dpo(beta: Positive = 0.1, flip_rate: Fraction = 0.1) -> Method:
    """loss = mean over pairs of ((1 - e) l(z) - e l(-z)) / (1 - 2 e), l(z) = -log sigmoid(beta z).

    z = h(chosen) - h(rejected), h = log(pi / pi_ref). Its mean over pairs of which a fraction e is
    the wrong way round is the loss of DPO over the right ones.

    Args:
        beta: inverse temperature (paper, section B: 0.1).
        flip_rate: e, below 1/2 (paper, section 6: 0.1).
    """
    loss = Preference(LogRatio(), RobustLogistic(beta, flip_rate))
    return Method(sampler=PreferencePairs(), advantage=identity, loss=loss, aggregation=group_mean)


PAPER = Paper(
    title="Provably Robust DPO: Aligning Language Models with Noisy Feedback",
    use="A known fraction of the pairs is the wrong way round.",
    tags=("preferences",),
    trl="DPOConfig(loss_type='robust', label_smoothing=0.1)",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "third_party",
        "TRL 1.16, trl/trainer/dpo_trainer.py, loss_type 'robust'; its paper index, which quotes"
        " beta of section B and the rate of section 6",
    ),
    plan="a pass over the pairs, one update per batch; prompts_per_step is the batch",
    deviations=(
        "A task with several chosen or rejected answers is one pair, of their mean scores; TRL "
        "has a row for each pair.",
    ),
    audit="loss and gradient compared with numbers that TRL 1.16 computed",
    shown=("docs/comparisons/preferences.md#wrong-labels-cdpo-and-robust-dpo",),
)
