"""cDPO: DPO with label smoothing. Mitchell, 2023, technical note."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import Logistic, LogRatio, Preference
from grupo.core.numbers import Fraction, Positive
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import PreferencePairs


def cdpo(beta: Positive = 0.1, label_smoothing: Fraction = 0.1) -> Method:
    """loss = mean over pairs of (1 - e) l(z) + e l(-z), l(z) = -log sigmoid(beta z): conservative.

    z = h(chosen) - h(rejected), h = log(pi / pi_ref), e the label smoothing. The loss has a
    minimum, sigmoid(beta z) = 1 - e.

    Args:
        beta: inverse temperature (TRL's default).
        label_smoothing: probability that a pair is the wrong way round (our choice).
    """
    loss = Preference(LogRatio(), Logistic(beta, label_smoothing))
    return Method(sampler=PreferencePairs(), advantage=identity, loss=loss, aggregation=group_mean)


PAPER = Paper(
    title="A Note on DPO with Noisy Preferences & Relationship to IPO",
    use="A part of the pairs is the wrong way round, and DPO becomes too sure of them.",
    tags=("preferences",),
    trl="CPOConfig(label_smoothing=0.1, cpo_alpha=0.0), which has no reference; "
    "DPOConfig(label_smoothing=0.1) in versions before 1.0",
    checked=("golden", "properties", "reference", "run"),
    source=Source("memory", "the note's equation"),
    plan="a pass over the pairs, one update per batch; prompts_per_step is the batch",
    audit="loss and gradient compared with numbers of CPOTrainer.cpo_loss of TRL 1.16",
    shown=("docs/comparisons/preferences.md#wrong-labels-cdpo-and-robust-dpo",),
)
