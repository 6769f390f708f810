"""Verdicts on claims: the first comparison, the checks of its environment, the repetition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grupo.evidence.claims.claim import Claim
from grupo.evidence.claims.comparisons import (
    ArmComparison,
    ArmComparisonResult,
    Verdict,
    compare,
    comparison_of,
    control_comparison,
    oracle_comparison,
)
from grupo.evidence.claims.oracle_use import oracle_use_of, verdict_with_oracle
from grupo.evidence.claims.repetition import DECIDED_ONCE, repetition_of, verdict_after
from grupo.evidence.claims.results import Results
from grupo.evidence.claims.settings import SETTINGS
from grupo.evidence.claims.table import ALL_CLAIMS


@dataclass(frozen=True)
class SettingChecks:
    """The checks of an environment.

    Args:
        oracle: The oracle against GRPO.
        control: GRPO against itself.
    """

    oracle: ArmComparisonResult
    control: ArmComparisonResult

    @property
    def passed(self) -> bool:
        """True if the oracle wins and the control shows no difference."""
        oracle_wins = self.oracle.verdict is Verdict.HOLDS
        return oracle_wins and self.control.verdict is Verdict.UNDECIDED

    def verdict(self, verdict: Verdict) -> Verdict:
        """The verdict on a claim, which counts only if its environment passes the checks."""
        if self.passed:
            return verdict
        is_pending = Verdict.PENDING in (self.oracle.verdict, self.control.verdict)
        return Verdict.PENDING if is_pending else Verdict.INVALID


@dataclass(frozen=True)
class ClaimResult:
    """The verdict on a claim and what it rests on.

    Args:
        outcome: The first comparison.
        first: Its verdict.
        repetition: The repetition, which counts if the first verdict is decided.
        verdict: The verdict after the repetition and the oracle use.
        oracle_use: The oracle use of the mechanism against the baseline; None where none is
            defined.
    """

    outcome: ArmComparisonResult
    first: Verdict
    repetition: ArmComparisonResult
    verdict: Verdict
    oracle_use: ArmComparisonResult | None = None

    @property
    def is_decided(self) -> bool:
        """True if the first comparison has a verdict in either direction."""
        return self.first in DECIDED_ONCE

    @property
    def is_repeated(self) -> bool:
        """True if the claim was decided and its repetition has all its runs."""
        return self.is_decided and self.verdict not in DECIDED_ONCE.values()


def claim_results(
    claims: Sequence[Claim], checks: Mapping[str, SettingChecks], results: Results
) -> Mapping[str, ClaimResult]:
    """The result of each claim, by the key of its method.

    Args:
        claims: The claims.
        checks: The checks of their environments, by name.
        results: The stored runs.
    """
    return {claim.key: _claim_result(claim, checks[claim.setting], results) for claim in claims}


def setting_checks(claims: Sequence[Claim], results: Results) -> Mapping[str, SettingChecks]:
    """The checks of the environments of some claims, by name, in the order of the settings."""
    names = {claim.setting for claim in claims}
    return {
        name: SettingChecks(
            compare(oracle_comparison(setting), results),
            compare(control_comparison(setting), results),
        )
        for name, setting in SETTINGS.items()
        if name in names
    }


def decided_comparisons(results: Results) -> list[ArmComparison]:
    """The comparisons of the claims that their first runs decided."""
    outcomes = claim_results(ALL_CLAIMS, setting_checks(ALL_CLAIMS, results), results)
    return [comparison_of(claim) for claim in ALL_CLAIMS if outcomes[claim.key].is_decided]


def _claim_result(claim: Claim, checks: SettingChecks, results: Results) -> ClaimResult:
    comparison = comparison_of(claim)
    outcome = compare(comparison, results)
    repetition = compare(repetition_of(comparison), results)
    first = checks.verdict(outcome.verdict)
    verdict = verdict_after(first, repetition.verdict)
    use = oracle_use_of(claim)
    if use is None:
        return ClaimResult(outcome, first, repetition, verdict)
    gain = compare(use, results)
    verdict = verdict_with_oracle(verdict, gain.verdict)
    return ClaimResult(outcome, first, repetition, verdict, gain)
