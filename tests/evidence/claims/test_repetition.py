"""The repetition of decided claims: its test, its seeds, and the verdict after it."""

from dataclasses import replace

import pytest

from grupo.evidence.claims.claim import Arm, Direction, Setting
from grupo.evidence.claims.comparisons import ArmComparison, Verdict, compare, pending_runs
from grupo.evidence.claims.digest import run_digest
from grupo.evidence.claims.environments import ManyModes
from grupo.evidence.claims.repetition import (
    REPETITION_DESIGN,
    expected_confirmed,
    repetition_of,
    verdict_after,
)
from grupo.evidence.claims.results import Results, run_key

SETTING = Setting("modes", "", ManyModes(num_tasks=2, num_items=3))
COMPARISON = ArmComparison(SETTING, Arm("max_rl()"), Arm("grpo(kl_coef=0.0)"), "success")


def results_with(differences) -> Results:
    """Runs of a baseline of 0.5 and of an arm that differs from it by each seed's difference."""
    results = Results()
    for seed, difference in differences.items():
        for arm, value in ((COMPARISON.arm, 0.5 + difference), (COMPARISON.baseline, 0.5)):
            key = run_key(SETTING, arm, seed)
            results.metrics[key] = {"success": value}
            results.digests[key] = run_digest(SETTING, arm)
    return results


def repeated(differences) -> Verdict:
    """The verdict of a repetition with these differences."""
    results = results_with(dict(enumerate(differences, 16)))
    return compare(repetition_of(COMPARISON), results).verdict


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        # of 65,536 signs 2,517 have 12 or more above zero: 3.8 %; 6,885 have 11 or more: 10.5 %
        ([0.01] * 12 + [-0.01] * 4, Verdict.HOLDS),
        ([0.01] * 11 + [-0.01] * 5, Verdict.UNDECIDED),
        ([-0.01] * 12 + [0.01] * 4, Verdict.DOES_NOT_HOLD),
        ([0.0] * 16, Verdict.UNDECIDED),
        # ranks: Wilcoxon's tables reject 16 pairs at 5 %, one-sided, up to a sum of 35
        ([-x / 100 if x in (4, 15, 16) else x / 100 for x in range(1, 17)], Verdict.HOLDS),
        ([-x / 100 if x in (5, 15, 16) else x / 100 for x in range(1, 17)], Verdict.UNDECIDED),
        ([x / 100 if x in (4, 15, 16) else -x / 100 for x in range(1, 17)], Verdict.DOES_NOT_HOLD),
        ([0.01] * 15, Verdict.PENDING),
    ],
)
def test_a_repetition_is_an_exact_one_sided_test_of_five_percent(differences, verdict):
    assert repeated(differences) is verdict


def test_its_seeds_follow_those_of_the_first_comparison():
    again = repetition_of(COMPARISON)
    first = COMPARISON.seeds(COMPARISON.design.max_pairs)
    assert [*again.seeds(16)] == [*range(16, 32)]
    assert not {*again.seeds(16)} & {*first}
    missing = pending_runs(again, results_with(dict.fromkeys(first, 0.1)))
    assert missing == [
        (arm, seed) for seed in range(16, 32) for arm in (COMPARISON.arm, COMPARISON.baseline)
    ]


def test_its_seeds_alone_decide_it_and_all_of_them_are_run():
    values = dict.fromkeys(range(16), 0.3) | dict.fromkeys(range(16, 32), -0.1)
    results = results_with(values)
    assert compare(COMPARISON, results).verdict is Verdict.HOLDS
    outcome = compare(repetition_of(COMPARISON), results)
    assert outcome.verdict is Verdict.DOES_NOT_HOLD
    assert outcome.pairs == 16
    assert outcome.difference.value == pytest.approx(-0.1)
    clear = results_with(dict.fromkeys(range(16, 28), 0.3))
    assert len(pending_runs(repetition_of(COMPARISON), clear)) == 8  # no look before the last


def test_direction_and_margin_of_the_claim_are_those_of_its_repetition():
    lower = replace(COMPARISON, direction=Direction.LOWER)
    equal = replace(COMPARISON, margin=0.05)
    results = results_with(dict.fromkeys(range(16, 32), -0.03))
    assert compare(repetition_of(COMPARISON), results).verdict is Verdict.DOES_NOT_HOLD
    assert compare(repetition_of(lower), results).verdict is Verdict.HOLDS
    assert compare(repetition_of(equal), results).verdict is Verdict.HOLDS


def test_the_interval_excludes_zero_exactly_if_a_claim_is_confirmed():
    for differences in ([0.01] * 12 + [-0.01] * 4, [0.01] * 11 + [-0.01] * 5):
        results = results_with(dict(enumerate(differences, 16)))
        outcome = compare(repetition_of(COMPARISON), results)
        assert (outcome.difference.low > 0) is (outcome.verdict is Verdict.HOLDS)


@pytest.mark.parametrize(
    ("first", "again", "verdict"),
    [
        (Verdict.HOLDS, Verdict.HOLDS, Verdict.HOLDS),
        (Verdict.HOLDS, Verdict.UNDECIDED, Verdict.NOT_CONFIRMED),
        (Verdict.HOLDS, Verdict.DOES_NOT_HOLD, Verdict.NOT_CONFIRMED),
        (Verdict.HOLDS, Verdict.PENDING, Verdict.HOLDS_ONCE),
        (Verdict.DOES_NOT_HOLD, Verdict.DOES_NOT_HOLD, Verdict.DOES_NOT_HOLD),
        (Verdict.DOES_NOT_HOLD, Verdict.HOLDS, Verdict.NOT_CONFIRMED),
        (Verdict.DOES_NOT_HOLD, Verdict.PENDING, Verdict.DOES_NOT_HOLD_ONCE),
        (Verdict.UNDECIDED, Verdict.HOLDS, Verdict.UNDECIDED),
        (Verdict.PENDING, Verdict.PENDING, Verdict.PENDING),
        (Verdict.INVALID, Verdict.HOLDS, Verdict.INVALID),
    ],
)
def test_a_decided_claim_stays_decided_if_its_repetition_has_the_same_verdict(
    first, again, verdict
):
    assert verdict_after(first, again) is verdict


def test_the_expected_number_of_confirmed_claims_by_hand():
    assert REPETITION_DESIGN.alpha == 0.1  # both directions together
    # 5 of 100 decided by chance, 20 decided: a quarter, of which a twentieth is confirmed
    assert expected_confirmed(20, 20, 100) == pytest.approx(15 + 5 * 0.05)
    assert expected_confirmed(8, 20, 100) == pytest.approx(6 + 2 * 0.05)
    assert expected_confirmed(3, 3, 100) == pytest.approx(3 * 0.05)  # no more than all
    assert expected_confirmed(0, 0, 100) == 0.0
