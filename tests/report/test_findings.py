"""Details, locations and severities of findings."""

import math
from dataclasses import replace

import pytest

from grupo.report.checks.finding import Location
from grupo.report.checks.group_summary import GroupSummary
from grupo.report.checks.run_data import within_group_correlation
from grupo.report.doctor import diagnose
from tests.helpers.run_evidence import (
    DEFECTIVE_RUNS,
    MIXED,
    finding_names,
    only_finding,
    run,
    scores,
    uniform_groups,
)


def test_details_contain_numbers_and_steps():
    assert (
        "NaN or infinite at steps 4, 8;"
        in only_finding(DEFECTIVE_RUNS["non-finite gradient"]).details
    )
    assert (
        "35% of the rollouts of 4 steps from 37 to 40"
        in only_finding(DEFECTIVE_RUNS["truncated answers"]).details
    )
    assert (
        "was 1 nats at 4 steps from 1 to 4 and is 0.05"
        in only_finding(DEFECTIVE_RUNS["entropy collapse"]).details
    )
    assert "No group was trained on at 10 steps from 1 to 37 of 40" in (
        only_finding(DEFECTIVE_RUNS["no trained groups"]).details
    )


def test_steps_in_which_no_group_ended_are_no_findings():
    healthy = run()
    waiting = {
        **healthy.steps[0],
        "groups/sampled": 0.0,
        "groups/trained": 0.0,
        "groups/continued": 16.0,
        "completions/length_mean": math.nan,
    }
    assert diagnose(replace(healthy, steps=(waiting, *healthy.steps[1:]))) == []
    dropped = waiting | {"groups/sampled": 8.0, "completions/length_mean": 5.0}
    finding = only_finding(replace(healthy, steps=(dropped, *healthy.steps[1:])))
    assert finding.name == "no trained groups"


def test_flat_groups_are_counted_as_correct_or_incorrect():
    flat = [GroupSummary(i, (float(i % 4 > 0),) * 4, 4, 4) for i in range(40)]
    finding = only_finding(run(groups=flat, groups_nonzero_std_frac=lambda i: 0.0))
    assert finding.name == "no reward spread, all correct"
    assert (
        "Of 10 recent groups with equal rewards, 8 are all correct and 2 all incorrect."
        in finding.details
    )


def test_failed_rewards_are_counted_with_the_most_frequent_error():
    groups = [
        GroupSummary(
            step=i,
            rewards=(0.0, 1.0),
            distinct_texts=4,
            num_rollouts=4,
            errors=(f"task {i}, rollout 0: reward 'a' hung", f"task {i}, rollout 1: b{i}"),
        )
        for i in range(6)
    ]
    finding = only_finding(run(groups=groups))
    assert finding.severity == "error"  # half of them
    assert (
        "12 of 24 rollouts (50.0%) could not be scored, at 6 steps from 0 to 5" in finding.details
    )
    assert "Most frequent (6 x): reward 'a' hung" in finding.details


def test_fallback_rewards_count_as_failures():
    groups = [GroupSummary(i, MIXED, 4, 4, fallback_count=i % 2) for i in range(10)]
    finding = only_finding(run(groups=groups))
    assert finding.severity == "warning"
    assert "5 of 40 rollouts" in finding.details
    assert "5 of them got a fallback reward." in finding.details


def test_a_held_out_score_below_its_first_interval_is_an_error():
    fell = run(held_out={"before": scores(0.6), "after": scores(0.3)})
    assert finding_names(fell) == ["held-out score fell: greedy", "held-out score fell: sampled"]
    assert "60.0% of the held-out tasks solved first, 30.0% now" in diagnose(fell)[0].details
    assert finding_names(run(held_out={"before": scores(0.6), "after": scores(0.5)})) == []


def test_findings_are_sorted_by_severity():
    defective = run(
        loss=lambda i: 0.0,
        completions_truncated_frac=lambda i: 0.5,
        sampler_mismatch_logp_diff_mean=lambda i: 0.1,
    )
    assert [f.severity for f in diagnose(defective)] == ["error", "warning", "note"]


def test_frozen_weights_of_a_lora_run_are_dead_adapters():
    adapted = {"policy": {"lora": {"rank": 4}}}
    for unchanged in (run(update_changed_frac=lambda i: 0.0), run(grad_norm=lambda i: 0.0)):
        assert finding_names(replace(unchanged, recipe=adapted)) == ["dead adapters"]


def test_the_location_of_a_mismatch_is_the_worst_action():
    off = run(
        sampler_mismatch_logp_diff_mean=lambda i: 0.02,
        sampler_mismatch_logp_diff_max=lambda i: 0.5 + (i == 2),
    )
    worst = {
        "sampler_mismatch/max_rollout": 2.0,
        "sampler_mismatch/max_action": 7.0,
        "sampler_mismatch/max_token": 11.0,
    }
    steps = [m | worst for m in off.steps]
    groups = [
        GroupSummary(3, MIXED, task="b", trained_rollouts=(0, 3)),
        GroupSummary(3, MIXED, task="c", trained_rollouts=(1,)),
    ]
    finding = only_finding(replace(off, steps=tuple(steps), groups=tuple(groups)))
    assert finding.locations == (
        Location(3, "c", 1, 7, 11),
    )  # task b has the trained rollouts 0 and 1
    assert str(finding.locations[0]) == "step 3, task c, rollout 1, action 7, token 11"


def test_truncated_rollouts_are_located():
    truncated = run(
        groups=uniform_groups(truncated_rollouts=(1, 3)), completions_truncated_frac=lambda i: 0.5
    )
    assert only_finding(truncated).locations == (
        Location(31, "sum", 1),
        Location(31, "sum", 3),
        Location(32, "sum", 1),
    )


def test_correlation_is_computed_within_groups():
    # deviations (-1, 1) with (-1, 1), and (-1, 1) with (2, -2): -2 / sqrt(4 x 10)
    groups = [
        GroupSummary(0, (0.0, 2.0), lengths=(5.0, 7.0)),
        GroupSummary(0, (8.0, 10.0), lengths=(9.0, 5.0)),
    ]
    assert within_group_correlation(groups, "lengths") == pytest.approx(-2 / math.sqrt(40))
    assert math.isnan(
        within_group_correlation([GroupSummary(0, (1.0, 1.0), lengths=(2.0, 3.0))], "lengths")
    )
