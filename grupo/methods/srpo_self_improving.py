"""Self-improving SRPO: a generator and a reviser. Choi et al., 2024, arXiv:2406.01660."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import LogRatio, SelfImprovement
from grupo.core.numbers import Fraction, Positive
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import SelfImprovingPairs


def srpo_self_improving(beta: Positive = 0.1, generator_weight: Fraction = 0.5) -> Method:
    """loss = mean over pairs of (1 - a) [(1/2 - b (h(w|l) - h(l|l)))^2 + (1/2 - b (h(w|w) -
    h(l|w)))^2] + a (1/2 - b/2 (h(w|l) + h(w) - h(l|w) - h(l)))^2.

    h = log(pi / pi_ref) of an answer, h(w|l) that of w as a revision of l.

    Args:
        beta: b, the weight of the KL divergence (our choice).
        generator_weight: a, the weight of the generator's loss (our choice).
    """
    loss = SelfImprovement(LogRatio(), beta, generator_weight)
    return Method(
        sampler=SelfImprovingPairs(), advantage=identity, loss=loss, aggregation=group_mean
    )


PAPER = Paper(
    title="Self-Improving Robust Preference Optimization",
    use="The pairs come from another policy, and answers may be revised at inference.",
    tags=("preferences",),
    checked=("golden", "properties"),
    catalogue=("srpo-self-improving",),
    source=Source("memory", "the losses, derived again from the paper's min-max objective"),
    plan="a pass over the pairs, one update per batch; prompts_per_step is the batch",
    missing=("Revising n times at inference: the turn strategy is not part of the method.",),
    deviations=(
        (
            "Our reading: the reviser's squares of both orders of a pair are added, and the "
            "generator's, equal in both, counts once; the paper's sampled loss could not be "
            "opened, and a mean over ordered pairs halves the reviser's."
        ),
    ),
    audit=(
        "formula compared with the catalogue's row, the min-max objective with a public note on "
        "Command A; no document with the losses could be opened"
    ),
    shown=("tests/methods/test_self_improving_world.py::test_revising_twice_beats_revising_once",),
)
