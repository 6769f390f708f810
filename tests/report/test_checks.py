"""What is wrong with a run is found by name, and what is not wrong is not."""

import math
from dataclasses import replace

import pytest

from grupo.report.checks import RunData
from grupo.report.checks.group_summary import GroupSummary
from grupo.report.checks.run_data import RunFiles
from grupo.report.doctor import diagnose
from tests.helpers.run_evidence import SICK, every, flat, names, one, run


@pytest.mark.parametrize("count", [3, 12, 40, 300])
def test_a_healthy_run_has_no_finding(count):
    assert diagnose(run(count)) == []


@pytest.mark.parametrize("name", SICK)
def test_each_sickness_is_found_and_nothing_else(name):
    finding = one(SICK[name])
    assert finding.name == name
    assert finding.causes
    assert finding.suggestions


def test_flat_groups_at_the_top_of_a_learned_run_are_no_reason_to_worry():
    done = run(
        groups=flat((1.0,) * 4),
        groups_signal=lambda i: 0.6 * (i < 30),
        reward_mean=lambda i: min(1.0, 0.3 + 0.03 * i),
        entropy=lambda i: 1.0 if i < 30 else 0.001,
    )
    assert [(f.name, f.severity) for f in diagnose(done)] == [("nothing left to learn", "note")]


def test_a_mismatch_is_an_error_where_it_is_large():
    assert one(run(mismatch_mean=lambda i: 0.02)).severity == "warning"
    assert one(run(mismatch_mean=lambda i: 0.06)).severity == "error"
    assert one(run(mismatch_max=lambda i: 2.5 * (i == 3))).severity == "warning"
    assert names(run(mismatch_mean=lambda i: 0.009)) == []


def test_a_part_that_is_always_earned_is_a_note():
    assert one(run(reward_right=lambda i: 1.0)).severity == "note"


def test_noise_is_no_fall():
    assert names(run(reward_mean=lambda i: 0.5 + 0.2 * (i % 3 - 1))) == []


def test_answers_that_grow_with_the_reward_are_fine():
    assert names(run(length_mean=lambda i: 50.0 + 2 * i)) == []


def test_a_run_of_two_steps_is_too_short_and_its_failures_are_found_all_the_same():
    short = run(2, gradient_nonfinite=lambda i: 1.0, groups=[GroupSummary(0, (1.0,), 2, 2, ("x",))])
    assert names(short) == ["failed rewards", "gradient not finite", "too short"]


def test_no_evidence_is_too_short():
    assert names(RunData()) == ["too short"]


def test_a_run_that_goes_on_or_has_ended_was_not_stopped():
    going = replace(
        run(), recipe={"steps": 50}, files=RunFiles(is_locked=True, seconds_since_write=79.0)
    )
    assert diagnose(going) == []
    assert diagnose(replace(run(), recipe={"steps": 40})) == []
    assert diagnose(replace(run(), recipe={"steps": 50}, summary={"steps": 40})) == []


def test_weights_that_are_meant_to_be_older_are_not_stale():
    ahead = run(mismatch_mean=lambda i: 0.001 * i, staleness=lambda i: float(i > 0))
    assert names(ahead) == []
    always_off = run(mismatch_mean=lambda i: 0.02, staleness=lambda i: float(i > 0))
    assert names(always_off) == ["sampler and trainer disagree"]  # at step 0, which is fresh


def test_a_prompt_that_holds_every_answer_of_a_list_leaks_nothing():
    assert names(run(groups=every(told=True, told_other=True))) == []


def test_one_mismatch_on_the_way_is_no_weight_that_is_stale():
    assert names(run(mismatch_mean=lambda i: 0.04 * (i == 38))) == []


def test_groups_of_one_have_nothing_to_differ_in():
    alone = [GroupSummary(i, (1.0,), 1, 1) for i in range(40)]
    same = {"reward_mean": lambda i: 1.0, "reward_std": lambda i: 0.0}
    assert names(run(groups=alone, groups_signal=lambda i: math.nan, **same)) == []
