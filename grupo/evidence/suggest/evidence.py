"""Measurements of each method: atlas, claims, smoke training, bias.

The data are in `evidence.json`, which `python -m grupo.evidence.suggest docs` writes from
docs/atlas.jsonl, docs/claims.jsonl, docs/smoke_training.md and docs/bias.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from grupo.storage import strict_json

FILE = "evidence.json"
HOLDS = ("holds", "holds, decided once")
DOES_NOT_HOLD = ("does not hold", "does not hold, decided once")


@dataclass(frozen=True)
class AtlasEvidence:
    """A comparison on a pretrained model that has ended.

    Args:
        family: Name of the family of tasks.
        arm: The method, or the part of it that was compared.
        baseline: What it was compared with.
        is_whole: The arm is the whole method.
        metric: What was measured.
        unit: "updates" or "tokens", of which both arms have the same.
        verdict: A verdict of `grupo.evidence.claims.comparisons.Verdict`.
        difference: Mean of arm minus baseline.
        low: Lower end of its interval.
        high: Upper end of its interval.
        pairs: Pairs of seeds.
    """

    family: str
    arm: str
    baseline: str
    is_whole: bool
    metric: str
    unit: str
    verdict: str
    difference: float
    low: float
    high: float
    pairs: int

    def __str__(self) -> str:
        return (
            f"on a pretrained model of 135 million parameters, {self.family}: {self.arm} against"
            f" {self.baseline} at equal {self.unit}, {self.metric} {self.difference:+.3g}"
            f" [{self.low:+.3g}, {self.high:+.3g}], {self.verdict}, {self.pairs} pairs of seeds"
            " (docs/atlas.md)"
        )


@dataclass(frozen=True)
class ClaimEvidence:
    """The comparison that tested the central claim of a method's paper.

    Args:
        sentence: The claim.
        setting: Name of the environment, a section of docs/claims.md.
        metric: What was measured.
        arm: The method with its arguments.
        baseline: What it was compared with.
        verdict: One of `grupo.evidence.claims.comparisons.Verdict`.
        difference: Mean of arm minus baseline.
        low: Lower end of its interval.
        high: Upper end of its interval.
        effect: Mean difference in standard deviations of differences, positive as predicted.
        pairs: Pairs of seeds.
    """

    sentence: str
    setting: str
    metric: str
    arm: str
    baseline: str
    verdict: str
    difference: float
    low: float
    high: float
    effect: float
    pairs: int

    def __str__(self) -> str:
        return (
            f'"{self.sentence}" {self.verdict} (environment {self.setting}: {self.metric}'
            f" {self.difference:+.3g} [{self.low:+.3g}, {self.high:+.3g}] against {self.baseline},"
            f" effect {self.effect:+.1f}, {self.pairs} pairs of seeds; docs/claims.md)"
        )


@dataclass(frozen=True)
class SmokeEvidence:
    """The row of a method in docs/smoke_training.md.

    Args:
        accuracy: Accuracy after training with its interval, as text.
        against_grpo: Difference to GRPO with its interval, as text.
        verdict: "more", "less" or "".
        learns: "yes", or what else the table says.
    """

    accuracy: str
    against_grpo: str
    verdict: str
    learns: str

    def __str__(self) -> str:
        verdict = f"{self.verdict} than GRPO" if self.verdict else "no difference to GRPO shown"
        return (
            f"learns a tiny task: {self.learns}; accuracy {self.accuracy}, {self.against_grpo}"
            f" against GRPO: {verdict} (docs/smoke_training.md)"
        )


@dataclass(frozen=True)
class BiasEvidence:
    """The row of a method in docs/bias.md.

    Args:
        tasks: Angle to the gradient of the expected reward between tasks, degrees, groups of 8.
        graded: The same with graded rewards.
        lengths: The same with answers of several lengths.
        variance: Variance relative to REINFORCE.
    """

    tasks: str
    graded: str
    lengths: str
    variance: str

    def __str__(self) -> str:
        return (
            f"exact gradient: {self.tasks} degrees from that of the expected reward between tasks,"
            f" {self.graded} with graded rewards, {self.lengths} with lengths; variance"
            f" {self.variance} of REINFORCE's (docs/bias.md)"
        )


@dataclass(frozen=True)
class Evidence:
    """All measurements of one method; None where there is none.

    Args:
        atlas: Comparisons of it, or of parts of it, on a pretrained model.
        claim: The test of its central claim.
        smoke: Its smoke training.
        bias: Its exact bias and variance.
    """

    atlas: tuple[AtlasEvidence, ...] = ()
    claim: ClaimEvidence | None = None
    smoke: SmokeEvidence | None = None
    bias: BiasEvidence | None = None

    @property
    def verdict(self) -> str:
        """The verdict on the pretrained model, else on its central claim, else "not tested"."""
        on_model = (one.verdict for one in self.atlas if one.is_whole)
        return next(on_model, self.claim.verdict if self.claim else "not tested")


def find_evidence(key: str) -> Evidence:
    """The evidence about a method."""
    return _all_evidence().get(key, Evidence())


@cache
def _all_evidence() -> Mapping[str, Evidence]:
    data = strict_json.from_json(
        (files("grupo.evidence.suggest") / FILE).read_text(encoding="utf-8")
    )
    return {key: evidence_from_data(record) for key, record in data.items()}


def evidence_from_data(record: Mapping[str, Any]) -> Evidence:
    """The evidence in a record of the file."""
    kinds = {"claim": ClaimEvidence, "smoke": SmokeEvidence, "bias": BiasEvidence}
    parts: dict[str, Any] = {name: kinds[name](**record[name]) for name in kinds if name in record}
    atlas = tuple(AtlasEvidence(**values) for values in record.get("atlas", ()))
    return Evidence(atlas=atlas, **parts)
