"""IPO: a pair's log-ratio is regressed to a constant. Azar et al., 2023, arXiv:2310.12036."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import MeanLogRatio, Preference, SquaredError
from grupo.core.paper import Paper, Source
from grupo.core.ranges import PositiveFloat
from grupo.method import Method
from grupo.rollouts.samplers import PreferencePairs


def ipo(tau: PositiveFloat = 0.1) -> Method:
    """loss = mean over pairs of (h(chosen) - h(rejected) - 1 / (2 tau))^2, h a mean log-ratio.

    Eq. 17, with h = log(pi / pi_ref) / |y|.

    Args:
        tau: weight of the regularisation; a small one asks for a larger difference (default of
            TRL's beta: 0.1).
    """
    loss = Preference(MeanLogRatio(), SquaredError(1 / (2 * tau)))
    return Method(sampler=PreferencePairs(), advantage=identity, loss=loss, aggregation=group_mean)


PAPER = Paper(
    title="A General Theoretical Paradigm to Understand Learning from Human Preferences",
    use="DPO overfits: pairs that are always ordered alike push the policy without limit.",
    tags=("preferences",),
    trl="DPOConfig(loss_type='ipo'); its beta is tau",
    checked=("golden", "properties", "reference", "run"),
    source=Source("third_party", "TRL 1.16, trl/trainer/dpo_trainer.py, loss_type 'ipo'"),
    plan="a pass over the pairs, one update per batch; prompts_per_step is the batch",
    deviations=(
        (
            "Log-ratios are means over tokens, where eq. 17 has sums: TRL documents that the "
            "authors confirmed it."
        ),
        "tau is TRL's default, 0.1: the paper's value was in no source that was opened.",
    ),
    audit="loss and gradient compared with numbers that TRL 1.16 computed",
    shown=("docs/comparisons/preferences.md#ten-methods-under-a-noisy-and-under-the-true-judge",),
)
