"""A comparison of the atlas: two arms on a family, one metric, one direction, one test."""

from collections.abc import Mapping
from dataclasses import dataclass

from grupo.compare.sequential_design import (
    CONTINUE,
    GREATER,
    SMALLER,
    Decision,
    SequentialDesign,
)
from grupo.evidence.atlas.runs import AtlasRun
from grupo.evidence.claims.comparisons import Verdict

DESIGN = SequentialDesign(max_pairs=16, looks=(8, 12, 16), alpha=0.05)
Runs = Mapping[tuple[str, int], AtlasRun]


@dataclass(frozen=True)
class AtlasComparison:
    """Two arms, a metric and the predicted direction, fixed before the first run.

    Args:
        family: Name of the family of tasks.
        arm: Name of the arm.
        baseline: Name of the arm that it is compared with.
        question: What the comparison asks, in a sentence.
        metric: A metric of the evaluations.
        direction: 1 if the arm is predicted to have more of the metric, else -1.
        unit: At equal "updates" or equal generated "tokens" the verdict is made; the difference in
            the other unit stands beside it.
        method: Key of the method whose central idea the arm has, or "": its claim of
            `docs/claims.md`, if there is one, asks the same of a table of logits.
    """

    family: str
    arm: str
    baseline: str
    question: str
    metric: str = "sampled"
    direction: int = 1
    unit: str = "updates"
    method: str = ""

    @property
    def arms(self) -> tuple[str, str]:
        """Arm and baseline as in the file of runs."""
        return f"{self.family}/{self.arm}", f"{self.family}/{self.baseline}"

    def differences(self, runs: Runs, unit: str) -> list[float]:
        """Arm minus baseline for each seed that both have, in the order of seeds.

        Both are compared where the run with the smaller total of the unit ended.
        """
        arm, baseline = self.arms
        pairs = [
            (runs[arm, seed], runs[baseline, seed])
            for seed in range(DESIGN.max_pairs)
            if (arm, seed) in runs and (baseline, seed) in runs
        ]
        return [self._difference(*pair, unit) for pair in pairs]

    def verdict(self, runs: Runs, unit: str = "") -> Verdict:
        """The verdict on the predicted direction, by default in the comparison's own unit."""
        verdict = self.decision(runs, unit).verdict
        if verdict in (GREATER, SMALLER):
            is_predicted = (verdict == GREATER) == (self.direction > 0)
            return Verdict.HOLDS if is_predicted else Verdict.DOES_NOT_HOLD
        return Verdict.PENDING if verdict == CONTINUE else Verdict.UNDECIDED

    def decision(self, runs: Runs, unit: str = "") -> Decision:
        """The test of the differences at the looks of the design, by default in its own unit."""
        return DESIGN.decide(self.differences(runs, unit or self.unit))

    def missing_runs(self, runs: Runs) -> list[tuple[str, int]]:
        """Arms and seeds that the next look needs and that are not there; [] after a verdict."""
        decision = self.decision(runs)
        if decision.verdict != CONTINUE:
            return []
        look = next(look for look in DESIGN.looks if look > decision.pairs)
        keys = [(arm, seed) for seed in range(look) for arm in self.arms]
        return [key for key in keys if key not in runs]

    def _difference(self, arm: AtlasRun, baseline: AtlasRun, unit: str) -> float:
        limit = min(arm.end(unit), baseline.end(unit))
        return arm.value(self.metric, unit, limit) - baseline.value(self.metric, unit, limit)


def whole_and_half(runs: Runs, arm: str, metric: str) -> list[float]:
    """The metric after all updates minus that after half of them, for each seed of an arm."""
    keys = sorted(key for key in runs if key[0] == arm)[: DESIGN.max_pairs]
    ends = ((runs[key], runs[key].end("updates")) for key in keys)
    return [
        run.value(metric, "updates", end) - run.value(metric, "updates", end / 2)
        for run, end in ends
    ]
