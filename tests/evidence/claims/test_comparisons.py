"""Verdicts of comparisons, and the runs that they still need."""

import pytest

from grupo.evidence.claims.claim import Arm, Direction, Setting
from grupo.evidence.claims.comparisons import (
    DESIGN,
    ArmComparison,
    Verdict,
    compare,
    control_comparison,
    pending_runs,
)
from grupo.evidence.claims.digest import run_digest
from grupo.evidence.claims.environments import ManyModes
from grupo.evidence.claims.results import Results, run_key

SETTING = Setting("modes", "", ManyModes(num_tasks=2, num_items=3))
ARM = Arm("max_rl()")
BASELINE = Arm("grpo(kl_coef=0.0)")
NOISE = [0.01, -0.02, 0.0, 0.02, -0.01, 0.015, -0.005, 0.01, 0.0, 0.01, -0.01, 0.02, 0, 0, 0.01, 0]


def results_with(differences, metric="success"):
    """Runs of a baseline of 0.5 and of an arm that differs from it."""
    results = Results()
    for seed, difference in enumerate(differences):
        for arm, value in ((ARM, 0.5 + difference), (BASELINE, 0.5)):
            key = run_key(SETTING, arm, seed)
            results.metrics[key] = {metric: value}
            results.digests[key] = run_digest(SETTING, arm)
    return results


def comparison(direction=Direction.HIGHER, margin=0.0):
    return ArmComparison(SETTING, ARM, BASELINE, "success", direction, margin)


@pytest.mark.parametrize(
    ("shift", "direction", "verdict"),
    [
        (0.2, Direction.HIGHER, Verdict.HOLDS),
        (-0.2, Direction.HIGHER, Verdict.DOES_NOT_HOLD),
        (-0.2, Direction.LOWER, Verdict.HOLDS),
        (0.2, Direction.LOWER, Verdict.DOES_NOT_HOLD),
        (0.0, Direction.HIGHER, Verdict.UNDECIDED),
        (0.0, Direction.LOWER, Verdict.UNDECIDED),
    ],
)
def test_the_verdict_is_the_sign_of_a_clear_difference(shift, direction, verdict):
    results = results_with([shift + noise for noise in NOISE])
    outcome = compare(comparison(direction), results)
    assert outcome.verdict is verdict
    assert outcome.difference.value == pytest.approx(shift, abs=0.01)
    assert outcome.difference.low < outcome.difference.value < outcome.difference.high
    assert outcome.arm_mean == pytest.approx(0.5 + shift, abs=0.01)
    assert outcome.baseline_mean == 0.5


def test_a_margin_makes_equality_provable_and_is_not_part_of_the_difference():
    results = results_with(NOISE)
    assert compare(comparison(), results).verdict is Verdict.UNDECIDED
    outcome = compare(comparison(margin=0.05), results)
    assert outcome.verdict is Verdict.HOLDS
    assert abs(outcome.difference.value) < 0.02
    assert outcome.difference.low > -0.05
    worse = results_with([noise - 0.1 for noise in NOISE])
    assert compare(comparison(margin=0.05), worse).verdict is Verdict.DOES_NOT_HOLD


def test_effect_sizes_have_the_predicted_sign():
    results = results_with([noise - 0.2 for noise in NOISE])
    assert compare(comparison(Direction.LOWER), results).effect_size > 1
    assert compare(comparison(Direction.HIGHER), results).effect_size < -1


def test_runs_are_needed_up_to_the_first_look_at_which_there_is_a_verdict():
    first_look = DESIGN.looks[0]
    assert len(pending_runs(comparison(), Results())) == 2 * first_look
    decided = results_with([0.2 + noise for noise in NOISE[:first_look]])
    assert pending_runs(comparison(), decided) == []
    open_question = results_with([0.04, -0.02, 0.05, 0.03, -0.01, 0.04, 0.02, -0.015])
    assert compare(comparison(), open_question).verdict is Verdict.PENDING
    missing = pending_runs(comparison(), open_question)
    assert missing == [
        (arm, seed) for seed in range(first_look, DESIGN.looks[1]) for arm in (ARM, BASELINE)
    ]


def test_a_run_of_other_code_is_needed_again():
    results = results_with([0.2 + noise for noise in NOISE[:8]])
    results.digests[run_key(SETTING, ARM, 3)] = "another"
    assert pending_runs(comparison(), results) == [(ARM, 3)]


def test_the_control_runs_all_pairs_of_one_method_on_the_same_tasks():
    control = control_comparison(SETTING)
    assert control.arm.method == control.baseline.method
    assert control.arm.repetition != control.baseline.repetition
    assert control.design.looks == (16,)
    assert len(pending_runs(control, Results())) == 32
