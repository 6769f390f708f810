"""NCA: noise contrast of both answers of a pair. Chen et al., 2024, arXiv:2402.05369."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import HalfLogistic, LabelledScore, LogRatio, NoiseContrastive
from grupo.core.numbers import Positive
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import PreferencePairs


def nca(beta: Positive = 0.01) -> Method:
    """loss = mean over pairs of l(h(w)) + (l(-h(w)) + l(-h(l))) / 2, l(h) = -log sigmoid(beta h).

    h = log(pi / pi_ref), w the chosen and l the rejected answer: NCA for two answers per prompt.

    Args:
        beta: inverse temperature (authors' configuration: 0.01; TRL's default: 0.1).
    """
    loss = LabelledScore(LogRatio(), NoiseContrastive(beta), HalfLogistic(beta))
    return Method(sampler=PreferencePairs(), advantage=identity, loss=loss, aggregation=group_mean)


PAPER = Paper(
    title="Noise Contrastive Alignment of Language Models with Explicit Rewards",
    use="DPO lowers the likelihood of the chosen answers, too.",
    tags=("preferences",),
    trl="DPOConfig(loss_type='nca_pair', beta=0.01)",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "thu-ml/Noise-Contrastive-Alignment: preference_trainer.py, yamls/preference_qlora.yaml; "
        "TRL 1.16, trl/trainer/dpo_trainer.py, loss_type 'nca_pair'",
    ),
    plan="a pass over the pairs, one update per batch; prompts_per_step is the batch",
    missing=("Several answers per prompt with explicit rewards: here pairs.",),
    audit=(
        "loss compared with preference_trainer.py, loss and gradient with numbers that TRL 1.16 "
        "computed"
    ),
    shown=("docs/comparisons/preferences.md#ten-methods-under-a-noisy-and-under-the-true-judge",),
)
