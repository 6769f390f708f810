"""Comparisons of two arms over paired seeds, and their verdicts."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from grupo.compare.sequential_design import CONTINUE, GREATER, SMALLER, SequentialDesign
from grupo.evidence.claims.claim import Arm, Claim, Direction, Setting
from grupo.evidence.claims.results import Results
from grupo.evidence.claims.settings import SETTINGS
from grupo.evidence.claims.table import ALL_CLAIMS
from grupo.util.statistics import Interval

DESIGN = SequentialDesign(max_pairs=16, looks=(8, 12, 16))
# of the control all pairs are run: giving up early would make it pass
CONTROL_DESIGN = replace(DESIGN.shared_by(len(SETTINGS)), looks=(16,))
BASELINE = "grpo(kl_coef=0.0)"


class Verdict(StrEnum):
    """The verdict on a claim."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    HOLDS_ONCE = "holds, decided once"
    DOES_NOT_HOLD_ONCE = "does not hold, decided once"
    NOT_CONFIRMED = "not confirmed"
    UNDECIDED = "not told apart"
    NOTHING_TO_GAIN = "nothing to gain"
    PENDING = "needs more runs"
    INVALID = "environment fails its checks"


VERDICTS = {GREATER: Verdict.HOLDS, SMALLER: Verdict.DOES_NOT_HOLD, CONTINUE: Verdict.PENDING}


@dataclass(frozen=True)
class ArmComparison:
    """Two arms, one metric and the sign that is predicted for arm minus baseline.

    Args:
        setting: The conditions.
        arm: The arm.
        baseline: The arm that it is compared with.
        metric: The metric.
        direction: The predicted sign.
        margin: A difference in the other direction that still counts as equal.
        design: Looks and error rate of the test.
        first_seed: Seed of the first pair; the others follow it.
    """

    setting: Setting
    arm: Arm
    baseline: Arm
    metric: str
    direction: Direction = Direction.HIGHER
    margin: float = 0.0
    design: SequentialDesign = DESIGN
    first_seed: int = 0

    @property
    def sign(self) -> int:
        """1 if a higher value of the arm is predicted, else -1."""
        return 1 if self.direction is Direction.HIGHER else -1

    def seeds(self, pairs: int) -> range:
        """The seeds of the first pairs."""
        return range(self.first_seed, self.first_seed + pairs)

    def paired_values(self, results: Results) -> list[tuple[float, float]]:
        """The metric of arm and baseline at each seed that both have, in the order of seeds."""
        arm = results.values(self.setting, self.arm, self.metric)
        baseline = results.values(self.setting, self.baseline, self.metric)
        seeds = self.seeds(self.design.max_pairs)
        return [(arm[seed], baseline[seed]) for seed in seeds if seed in arm and seed in baseline]

    def gains(self, results: Results) -> list[float]:
        """Differences in the predicted direction, plus the margin."""
        pairs = self.paired_values(results)
        return [self.sign * (arm - baseline) + self.margin for arm, baseline in pairs]


@dataclass(frozen=True)
class ArmComparisonResult:
    """The verdict on a comparison.

    Args:
        verdict: The verdict.
        pairs: Pairs of seeds that it rests on.
        arm_mean: Mean of the metric over the arm's runs among these pairs.
        baseline_mean: Mean over the baseline's.
        difference: Mean of arm minus baseline with its interval.
        effect_size: Mean difference in standard deviations of differences, in the predicted
            direction.
    """

    verdict: Verdict
    pairs: int
    arm_mean: float
    baseline_mean: float
    difference: Interval
    effect_size: float


def oracle_comparison(setting: Setting) -> ArmComparison:
    """The upper bound of an environment, which has to win."""
    return ArmComparison(setting, Arm("oracle"), Arm(BASELINE), setting.metric)


def control_comparison(setting: Setting) -> ArmComparison:
    """The negative control: the same method on the same tasks with other random numbers."""
    arms = (Arm(BASELINE, repetition=1), Arm(BASELINE))
    return ArmComparison(setting, *arms, setting.metric, design=CONTROL_DESIGN)


def comparison_of(claim: Claim) -> ArmComparison:
    """The comparison that tests a claim."""
    setting = SETTINGS[claim.setting]
    arms = (claim.arm, claim.baseline)
    return ArmComparison(setting, *arms, claim.metric, claim.direction, claim.margin)


def all_comparisons() -> Iterator[ArmComparison]:
    """The checks of each setting, then its claims."""
    for setting in SETTINGS.values():
        yield oracle_comparison(setting)
        yield control_comparison(setting)
        yield from (comparison_of(claim) for claim in ALL_CLAIMS if claim.setting == setting.name)


def compare(comparison: ArmComparison, results: Results) -> ArmComparisonResult:
    """The verdict on a comparison from the runs that are there."""
    decision = comparison.design.decide(comparison.gains(results))
    used = comparison.paired_values(results)[: decision.pairs]
    sign, margin = comparison.sign, comparison.margin
    mean = decision.mean_difference
    bounds = sorted(sign * (bound - margin) for bound in (mean.low, mean.high))
    return ArmComparisonResult(
        VERDICTS.get(decision.verdict, Verdict.UNDECIDED),
        decision.pairs,
        _mean([arm for arm, _ in used]),
        _mean([baseline for _, baseline in used]),
        Interval(sign * (mean.value - margin), *bounds),
        decision.effect_size.value,
    )


def pending_runs(comparison: ArmComparison, results: Results) -> list[tuple[Arm, int]]:
    """The runs that a comparison needs up to its next look; empty once there is a verdict."""
    arms = (comparison.arm, comparison.baseline)
    for look in comparison.design.looks:
        missing = [
            (arm, seed)
            for seed in comparison.seeds(look)
            for arm in arms
            if not results.is_current(comparison.setting, arm, seed)
        ]
        if missing:
            return missing
        if comparison.design.verdict(comparison.gains(results))[0] != CONTINUE:
            return []
    return []


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan
