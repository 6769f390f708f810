"""RSO hinge: a hinge loss of a pair's log-ratio. Liu et al., 2023, arXiv:2309.06657."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import Hinge, LogRatio, Preference
from grupo.core.numbers import Positive
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import PreferencePairs


def hinge(gamma: Positive = 0.05) -> Method:
    """loss = mean over pairs of max(0, 1 - gamma (h(chosen) - h(rejected))), h = log(pi / pi_ref).

    Args:
        gamma: the loss is 0 from a difference of 1 / gamma on (TRL's page of papers:
            0.05).
    """
    loss = Preference(LogRatio(), Hinge(gamma))
    return Method(sampler=PreferencePairs(), advantage=identity, loss=loss, aggregation=group_mean)


PAPER = Paper(
    title="Statistical Rejection Sampling Improves Preference Optimization",
    use="Pairs that the policy orders well already should have no gradient.",
    tags=("preferences",),
    trl="DPOConfig(loss_type='hinge'); its beta is gamma",
    checked=("golden", "properties", "reference", "run"),
    source=Source("third_party", "TRL 1.16, trl/trainer/dpo_trainer.py, loss_type 'hinge'"),
    plan="a pass over the pairs, one update per batch; prompts_per_step is the batch",
    missing=(
        "The rejection sampler: pairs of the policy's own answers, drawn by a reward model.",
        "SLiC's loss without a reference, arXiv:2305.10425: replace the score by rollout_logp.",
    ),
    deviations=(
        "A task with several chosen or rejected answers is one pair, of their mean scores; TRL "
        "has a row for each pair.",
    ),
    audit="loss and gradient compared with numbers that TRL 1.16 computed",
    shown=("docs/comparisons/preferences.md#ten-methods-under-a-noisy-and-under-the-true-judge",),
)
