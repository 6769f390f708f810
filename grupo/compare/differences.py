"""Differences of recipes to the baseline over paired runs, tested at once or sequentially."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grupo.compare.sequential_design import (
    CONTINUE,
    GREATER,
    INCONCLUSIVE,
    SMALLER,
    Decision,
    SequentialDesign,
)
from grupo.util import statistics
from grupo.util.statistics import CONFIDENCE_LEVEL, Interval, Strata

IF_NORMAL = ", if differences are normal"
UNFINISHED_TEST = "continue"
VERDICTS = {GREATER: "more", SMALLER: "less", INCONCLUSIVE: INCONCLUSIVE, CONTINUE: UNFINISHED_TEST}


@dataclass(frozen=True)
class Difference:
    """The difference of a recipe to the baseline, over pairs of runs with equal seed and tasks.

    Args:
        name: the recipe.
        pairs: the number of pairs.
        mean_difference: in the metric of the comparison.
        effect_size: the mean in standard deviations of the differences.
        verdict: "more", "less", `INCONCLUSIVE`, "continue" while a sequential test needs more
            pairs; followed by `IF_NORMAL` if only the t-test is significant.
        tests: p values by test; empty for a sequential test.
        looks: the decision at each look of a sequential test.
    """

    name: str
    pairs: int
    mean_difference: Interval
    effect_size: Interval
    verdict: str
    tests: Mapping[str, float]
    looks: tuple[Decision, ...] = ()


def tested_differences(strata_by_name: Mapping[str, Strata]) -> list[Difference]:
    """Test each recipe's differences once; p values are Holm-corrected for all recipes.

    Args:
        strata_by_name: differences to the baseline by recipe, then by task set.
    """
    pooled = [[x for values in strata for x in values] for strata in strata_by_name.values()]
    sign_ps = [statistics.sign_flip_p_value(x) for x in pooled]
    t_ps = [statistics.paired_t_p_value(x) for x in pooled]
    sign_ps_holm = statistics.holm_correction(sign_ps)
    t_ps_holm = statistics.holm_correction(t_ps)
    return [
        _tested(
            name,
            strata,
            {
                "sign_test_p": sign_ps[i],
                "sign_test_p_holm": sign_ps_holm[i],
                "t_test_p": t_ps[i],
                "t_test_p_holm": t_ps_holm[i],
            },
        )
        for i, (name, strata) in enumerate(strata_by_name.items())
    ]


def _tested(name: str, strata: Strata, tests: Mapping[str, float]) -> Difference:
    pooled = [x for values in strata for x in values]
    mean = statistics.stratified_mean(strata)
    effect = statistics.standardised_mean(pooled, 1 - CONFIDENCE_LEVEL)
    return Difference(name, len(pooled), mean, effect, _verdict(mean.value, tests), tests)


def sequential_differences(
    differences_by_name: Mapping[str, Sequence[float]], design: SequentialDesign
) -> list[Difference]:
    """Decide on each recipe's differences at the looks of a design.

    Args:
        differences_by_name: differences to the baseline by recipe, one per seed, in their order.
        design: the design of each recipe.
    """
    return [_decided(name, x, design) for name, x in differences_by_name.items()]


def _decided(name: str, differences: Sequence[float], design: SequentialDesign) -> Difference:
    final = design.decide(differences)
    earlier = [n for n in design.looks if n < final.pairs]
    looks = (*(design.decide(differences[:n]) for n in earlier), final)
    verdict = VERDICTS[final.verdict]
    mean, effect = final.mean_difference, final.effect_size
    return Difference(name, final.pairs, mean, effect, verdict, {}, looks)


def _verdict(mean: float, tests: Mapping[str, float]) -> str:
    """Whether the corrected difference is significant: "more", "less" or `INCONCLUSIVE`."""
    direction = "more" if mean > 0 else "less"
    if tests["sign_test_p_holm"] <= 1 - CONFIDENCE_LEVEL:
        return direction
    is_normal_significant = tests["t_test_p_holm"] <= 1 - CONFIDENCE_LEVEL
    return direction + IF_NORMAL if is_normal_significant else INCONCLUSIVE
