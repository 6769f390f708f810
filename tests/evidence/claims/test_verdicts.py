"""Verdicts on claims: the checks of an environment count, and a repetition confirms."""

import pytest

from grupo.evidence.claims import oracle_use
from grupo.evidence.claims.claim import Arm
from grupo.evidence.claims.comparisons import (
    BASELINE,
    ArmComparison,
    Verdict,
    compare,
    comparison_of,
)
from grupo.evidence.claims.results import Results
from grupo.evidence.claims.settings import SETTINGS
from grupo.evidence.claims.table import ALL_CLAIMS, CLAIMS
from grupo.evidence.claims.verdicts import (
    SettingChecks,
    claim_results,
    decided_comparisons,
    setting_checks,
)

NOISE = [0.01, -0.01] * 8
CLAIM = CLAIMS["posterior_grpo"]  # `success` in the environment `judge` is higher than GRPO's
BASE = (CLAIM.setting, BASELINE)


def outcome(shift, pairs=16):
    """The oracle of an environment against GRPO, which it exceeds by the shift."""
    results = Results()
    for seed, x in enumerate(NOISE[:pairs]):
        results.metrics["unlabelled", "oracle", seed] = {"success": 0.5 + shift + x}
        results.metrics["unlabelled", BASELINE, seed] = {"success": 0.5}
    arms = Arm("oracle"), Arm(BASELINE)
    return compare(ArmComparison(SETTINGS["unlabelled"], *arms, "success"), results)


def test_an_environment_passes_if_the_oracle_wins_and_the_control_shows_nothing():
    wins, equal, loses = outcome(0.3), outcome(0.0), outcome(-0.3)
    assert wins.verdict is Verdict.HOLDS
    assert SettingChecks(wins, equal).passed
    assert not SettingChecks(equal, equal).passed
    assert not SettingChecks(loses, equal).passed
    assert not SettingChecks(wins, wins).passed
    pending = outcome(0.0, pairs=0)
    assert SettingChecks(wins, equal).verdict(Verdict.HOLDS) is Verdict.HOLDS
    assert SettingChecks(wins, pending).verdict(Verdict.HOLDS) is Verdict.PENDING
    assert SettingChecks(equal, equal).verdict(Verdict.HOLDS) is Verdict.INVALID
    assert SettingChecks(wins, loses).verdict(Verdict.UNDECIDED) is Verdict.INVALID


def runs(first, again=()):
    """Runs of an environment that passes its checks, and of a claim with these differences."""
    results = Results()
    control = Arm(BASELINE, repetition=1).label
    differences = dict(enumerate(first)) | dict(enumerate(again, 16))
    for seed in range(32):
        results.metrics[*BASE, seed] = {"success": 0.5}
    for seed, x in enumerate(NOISE):
        results.metrics[CLAIM.setting, "oracle", seed] = {"success": 0.9 + x}
        results.metrics[CLAIM.setting, control, seed] = {"success": 0.5 + x}
    for seed, difference in differences.items():
        key = CLAIM.setting, CLAIM.arm.label, seed
        results.metrics[key] = {"success": 0.5 + difference}
    return results


@pytest.mark.parametrize(
    ("first", "again", "first_verdict", "verdict", "is_repeated"),
    [
        ([0.2] * 8, [0.1] * 16, Verdict.HOLDS, Verdict.HOLDS, True),
        ([0.2] * 8, [0.1, -0.1] * 8, Verdict.HOLDS, Verdict.NOT_CONFIRMED, True),
        ([-0.2] * 8, [0.1] * 16, Verdict.DOES_NOT_HOLD, Verdict.NOT_CONFIRMED, True),
        ([0.2] * 8, [0.1] * 15, Verdict.HOLDS, Verdict.HOLDS_ONCE, False),
        (NOISE, [0.1] * 16, Verdict.UNDECIDED, Verdict.UNDECIDED, False),
    ],
)
def test_the_verdict_follows_from_both_comparisons(
    first, again, first_verdict, verdict, is_repeated
):
    results = runs(first, again)
    (result,) = claim_results([CLAIM], setting_checks([CLAIM], results), results).values()
    assert result.first is first_verdict
    assert result.verdict is verdict
    assert result.is_repeated is is_repeated


@pytest.mark.parametrize(
    ("oracle", "verdict"),
    [(0.9, Verdict.UNDECIDED), (0.5, Verdict.NOTHING_TO_GAIN), (0.3, Verdict.NOTHING_TO_GAIN)],
)
def test_an_undecided_claim_has_nothing_to_gain_if_its_oracle_use_does_not_win(
    monkeypatch, oracle, verdict
):
    monkeypatch.setattr(oracle_use, "ORACLE_USES", {CLAIM.key: Arm("perfect")})
    for first, expected in ((NOISE, verdict), ([0.2] * 8, Verdict.HOLDS_ONCE)):
        results = runs(first)
        for seed, x in enumerate(NOISE):
            results.metrics[CLAIM.setting, "perfect", seed] = {"success": oracle + x}
        (result,) = claim_results([CLAIM], setting_checks([CLAIM], results), results).values()
        assert result.verdict is expected
        assert result.oracle_use.difference.value == pytest.approx(oracle - 0.5)


def test_oracle_uses_are_those_of_claims_about_credit_to_turns_and_tokens():
    uses = {key: oracle_use.oracle_use_of(CLAIMS[key]) for key in oracle_use.ORACLE_USES}
    assert {use.setting.name for use in uses.values()} == {"turns", "tokens"}
    for key, use in uses.items():
        assert use.baseline == CLAIMS[key].baseline
        assert use.metric == CLAIMS[key].metric
    assert oracle_use.oracle_use_of(CLAIM) is None


def test_claims_that_their_first_runs_decided_are_repeated():
    assert decided_comparisons(Results()) == []
    assert decided_comparisons(runs(NOISE)) == []
    assert decided_comparisons(runs([0.2] * 8)) == [comparison_of(CLAIM)]
    failing = runs([0.2] * 8)
    for seed in range(16):
        failing.metrics[CLAIM.setting, "oracle", seed] = {"success": 0.5}
    assert decided_comparisons(failing) == []


def test_two_claims_of_an_environment_share_its_checks():
    claims = [claim for claim in ALL_CLAIMS if claim.setting == CLAIM.setting]
    assert len(claims) == 2
    assert list(setting_checks(claims, Results())) == [CLAIM.setting]
    undecided = claim_results(claims, setting_checks(claims, Results()), Results())
    assert {result.verdict for result in undecided.values()} == {Verdict.PENDING}
