"""Each check reports its defect, and nothing on a healthy run."""

import math
from dataclasses import replace

import pytest

from grupo.report.checks import RunData
from grupo.report.checks.group_summary import GroupSummary
from grupo.report.checks.run_data import RunFiles
from grupo.report.doctor import diagnose
from tests.helpers.run_evidence import (
    DEFECTIVE_RUNS,
    finding_names,
    flat_after_half,
    only_finding,
    run,
    uniform_groups,
)


@pytest.mark.parametrize("count", [3, 12, 40, 300])
def test_a_healthy_run_has_no_finding(count):
    assert diagnose(run(count)) == []


@pytest.mark.parametrize("name", DEFECTIVE_RUNS)
def test_each_defect_gives_exactly_its_finding(name):
    finding = only_finding(DEFECTIVE_RUNS[name])
    assert finding.name == name
    assert finding.causes
    assert finding.suggestions


def test_equal_rewards_near_the_best_reward_are_a_note():
    solved = run(
        groups=flat_after_half((1.0,) * 4),
        groups_nonzero_std_frac=lambda i: 0.6 * (i < 30),
        reward_mean=lambda i: min(1.0, 0.3 + 0.03 * i),
        policy_entropy=lambda i: 1.0 if i < 30 else 0.001,
    )
    assert [(f.name, f.severity) for f in diagnose(solved)] == [("all tasks solved", "note")]


def test_severity_of_a_sampler_mismatch_grows_with_its_size():
    assert only_finding(run(sampler_mismatch_logp_diff_mean=lambda i: 0.02)).severity == "warning"
    assert only_finding(run(sampler_mismatch_logp_diff_mean=lambda i: 0.06)).severity == "error"
    assert (
        only_finding(run(sampler_mismatch_logp_diff_max=lambda i: 2.5 * (i == 3))).severity
        == "warning"
    )
    assert finding_names(run(sampler_mismatch_logp_diff_mean=lambda i: 0.009)) == []


def test_a_mismatch_that_bfloat16_explains_is_no_finding():
    for policy in ({"dtype": "bfloat16"}, {"dtype": "float32", "engine": {"dtype": "bfloat16"}}):
        recipe = {"policy": policy}
        rounded = run(sampler_mismatch_logp_diff_mean=lambda i: 0.041)
        assert finding_names(rounded) == ["sampler mismatch"]
        assert finding_names(replace(rounded, recipe=recipe)) == []
        larger = replace(run(sampler_mismatch_logp_diff_mean=lambda i: 0.06), recipe=recipe)
        assert only_finding(larger).severity == "warning"
        assert "below 0.05 on average" in only_finding(larger).details
        largest = replace(run(sampler_mismatch_logp_diff_mean=lambda i: 0.11), recipe=recipe)
        assert only_finding(largest).severity == "error"


def test_a_constant_positive_reward_term_is_a_note():
    assert only_finding(run(reward_right=lambda i: 1.0)).severity == "note"


def test_reward_noise_is_not_a_drop():
    assert finding_names(run(reward_mean=lambda i: 0.5 + 0.2 * (i % 3 - 1))) == []


def test_length_growth_with_rising_reward_gives_no_finding():
    assert finding_names(run(completions_length_mean=lambda i: 50.0 + 2 * i)) == []


def test_failures_are_reported_in_runs_with_too_few_steps():
    short = run(2, grad_nonfinite=lambda i: 1.0, groups=[GroupSummary(0, (1.0,), 2, 2, ("x",))])
    assert finding_names(short) == ["failed rewards", "non-finite gradient", "too few steps"]


def test_an_empty_run_has_too_few_steps():
    assert finding_names(RunData()) == ["too few steps"]


def test_running_and_finished_runs_were_not_stopped_early():
    running = replace(
        run(), recipe={"max_steps": 50}, files=RunFiles(is_locked=True, seconds_since_write=79.0)
    )
    assert diagnose(running) == []
    assert diagnose(replace(run(), recipe={"max_steps": 40})) == []
    assert diagnose(replace(run(), recipe={"max_steps": 50}, summary={"steps": 40})) == []


def test_asynchronous_rollouts_are_not_stale_weights():
    asynchronous = run(
        sampler_mismatch_logp_diff_mean=lambda i: 0.001 * i, staleness=lambda i: float(i > 0)
    )
    assert finding_names(asynchronous) == []
    always_off = run(
        sampler_mismatch_logp_diff_mean=lambda i: 0.02, staleness=lambda i: float(i > 0)
    )
    assert finding_names(always_off) == ["sampler mismatch"]  # at step 0, which is on policy


def test_prompts_that_also_contain_other_answers_do_not_leak():
    assert (
        finding_names(
            run(groups=uniform_groups(answer_in_prompt=True, other_answer_in_prompt=True))
        )
        == []
    )


def test_a_single_mismatch_is_not_stale_weights():
    assert finding_names(run(sampler_mismatch_logp_diff_mean=lambda i: 0.04 * (i == 38))) == []


def test_groups_of_one_rollout_need_no_reward_spread():
    groups = [GroupSummary(i, (1.0,), 1, 1) for i in range(40)]
    constant = {"reward_mean": lambda i: 1.0, "reward_std": lambda i: 0.0}
    assert (
        finding_names(run(groups=groups, groups_nonzero_std_frac=lambda i: math.nan, **constant))
        == []
    )
