"""BCO: a classifier of single answers, shifted. Jung et al., 2024, arXiv:2404.04656."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import BatchMeanShift, LabelledScore, Logistic, LogRatio, NegatedLogistic
from grupo.core.numbers import Positive
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import PreferencePairs


def bco(beta: Positive = 0.1) -> Method:
    """loss = mean over groups of l(h(w) - d) + l(d - h(l)), l(z) = -log sigmoid(beta z).

    h = log(pi / pi_ref), w the chosen and l the rejected answer; a group may have either alone.
    d is half the sum of the mean h of all chosen and that of all rejected answers, a constant.
    The pairs are columns of the tasks; for rows with one answer and a label use the sampler
    `LabelledAnswers()`.

    Args:
        beta: inverse temperature (TRL's default).
    """
    chosen, rejected = Logistic(beta), NegatedLogistic(beta)
    loss = LabelledScore(LogRatio(), chosen, rejected, BatchMeanShift())
    return Method(sampler=PreferencePairs(), advantage=identity, loss=loss, aggregation=group_mean)


PAPER = Paper(
    title="Binary Classifier Optimization for Large Language Model Alignment",
    use="Answers have a label, thumbs up or down, and are no pairs.",
    tags=("preferences",),
    trl="DPOConfig(loss_type='bco_pair'), without the shift in TRL 1.16",
    checked=("golden", "properties", "reference", "run"),
    source=Source("third_party", "TRL 1.16, trl/trainer/dpo_trainer.py, loss_type 'bco_pair'"),
    plan="a pass over the pairs, one update per batch; prompts_per_step is the batch",
    missing=("Weights by the density ratio of chosen and rejected prompts.",),
    deviations=(
        "The shift is the mean of the batch; the paper's is a moving average of batches, that of "
        "TRL's BCOTrainer the mean over all answers so far.",
    ),
    audit="without the shift: loss and gradient compared with numbers that TRL 1.16 computed",
    shown=("docs/comparisons/preferences.md#wrong-labels-cdpo-and-robust-dpo",),
)
