"""DPO: a classifier of pairs by their log-ratios. Rafailov et al., 2023, arXiv:2305.18290."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import Logistic, LogRatio, Preference
from grupo.core.numbers import Positive
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import PreferencePairs


def dpo(beta: Positive = 0.1) -> Method:
    """loss = mean over pairs of -log sigmoid(beta (h(chosen) - h(rejected))), h = log(pi / pi_ref).

    Eq. 7. h is a sum over the tokens of the answer, its end token included. The pairs are columns
    of the tasks.

    Args:
        beta: inverse temperature: the weight of the KL divergence from the reference policy.
    """
    loss = Preference(LogRatio(), Logistic(beta))
    return Method(sampler=PreferencePairs(), advantage=identity, loss=loss, aggregation=group_mean)


PAPER = Paper(
    title="Direct Preference Optimization: Your Language Model is Secretly a Reward Model",
    use="Pairs of a better and a worse answer exist, and a reward does not.",
    tags=("preferences",),
    trl="DPOConfig(loss_type='sigmoid')",
    checked=("golden", "properties", "reference", "run"),
    source=Source("third_party", "TRL 1.16, trl/trainer/dpo_trainer.py, loss_type 'sigmoid'"),
    plan="a pass over the pairs, one update per batch; prompts_per_step is the batch",
    deviations=(
        "A task with several chosen or rejected answers is one pair, of their mean scores; TRL "
        "has a row for each pair.",
    ),
    audit="loss and gradient compared with numbers that TRL 1.16 computed",
    shown=("docs/comparisons/preferences.md#ten-methods-under-a-noisy-and-under-the-true-judge",),
)
