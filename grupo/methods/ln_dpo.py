"""LN-DPO: DPO with log-ratios per token. Ahrabian et al., 2024, arXiv:2407.15229."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import Logistic, MeanLogRatio, Preference
from grupo.core.numbers import Positive
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import PreferencePairs


def ln_dpo(beta: Positive = 5.0) -> Method:
    """loss = mean over pairs of -log sigmoid(beta (h(chosen) - h(rejected))), h per token.

    h = log(pi / pi_ref) / |y|, so that the length of an answer has no influence of its own.

    Args:
        beta: inverse temperature, larger than DPO's because h is a mean (Tulu 3: 5).
    """
    loss = Preference(MeanLogRatio(), Logistic(beta))
    return Method(sampler=PreferencePairs(), advantage=identity, loss=loss, aggregation=group_mean)


PAPER = Paper(
    title="The Hitchhiker's Guide to Human Alignment with *PO",
    use="DPO makes answers longer.",
    tags=("preferences", "length"),
    trl="DPOConfig(loss_type='sigmoid_norm', beta=5.0)",
    checked=("golden", "properties", "reference"),
    catalogue=("ln-dpo",),
    source=Source(
        "third_party",
        "TRL's index of papers, which has the equation and cites Tulu 3, and its DPOTrainer, "
        "loss_type 'sigmoid_norm'",
    ),
    plan="a pass over the pairs, one update per batch; prompts_per_step is the batch",
    missing=("The paper's study of methods over their hyperparameters.",),
    deviations=(
        "beta 5 is Tulu 3's (allenai/open-instruct, tulu3_dpo_8b.yaml); the values that the paper "
        "tried could not be opened.",
    ),
    audit="loss and gradient compared with numbers of TRL 1.16, loss_type 'sigmoid_norm'",
    shown=(
        "docs/comparisons/preferences.md#ln-dpo-shorter-answers-than-dpo",
        "docs/comparisons/preferences.md#ten-methods-under-a-noisy-and-under-the-true-judge",
    ),
)
