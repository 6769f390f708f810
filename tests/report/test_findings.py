"""What a finding says: numbers, steps, places, how bad it is."""

import math
from dataclasses import replace

import pytest

from grupo.report.checks.finding import Location
from grupo.report.checks.group_summary import GroupSummary
from grupo.report.checks.run_data import within_group_correlation
from grupo.report.doctor import diagnose
from tests.helpers.run_evidence import MIXED, SICK, every, names, one, run, scores


def test_the_numbers_and_steps_are_said():
    assert "NaN or infinite at steps 3, 7;" in one(SICK["gradient not finite"]).details
    assert "35% of the answers of 4 steps from 36 to 39" in one(SICK["answers cut off"]).details
    assert "was 1 nats at 4 steps from 0 to 3 and is 0.05" in one(SICK["entropy collapse"]).details
    assert "No group was learned from at 10 steps from 0 to 36 of 40" in (
        one(SICK["nothing learned from"]).details
    )


def test_right_and_wrong_are_counted_apart():
    both = [GroupSummary(i, (float(i % 4 > 0),) * 4, 4, 4) for i in range(40)]
    finding = one(run(groups=both, groups_signal=lambda i: 0.0))
    assert finding.name == "no signal, all right"
    assert "Of 10 recent groups that are flat, 8 are all right and 2 all wrong." in finding.details


def test_failures_are_counted_and_the_most_frequent_named():
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
    finding = one(run(groups=groups))
    assert finding.severity == "error"  # half of them
    assert (
        "12 of 24 rollouts (50.0%) could not be judged, at 6 steps from 0 to 5" in finding.details
    )
    assert "Most often (6 x): reward 'a' hung" in finding.details


def test_failures_that_were_given_a_reward_are_counted_too():
    groups = [GroupSummary(i, MIXED, 4, 4, fallback_count=i % 2) for i in range(10)]
    finding = one(run(groups=groups))
    assert finding.severity == "warning"
    assert "5 of 40 rollouts" in finding.details
    assert "5 of them were given a reward all the same." in finding.details


def test_a_held_out_share_that_fell_beyond_its_intervals_is_an_error():
    fell = run(held_out={"before": scores(0.6), "after": scores(0.3)})
    assert names(fell) == ["held-out share fell: greedy", "held-out share fell: sampled"]
    assert "60.0% of the held-out tasks at first, 30.0% now" in diagnose(fell)[0].details
    assert names(run(held_out={"before": scores(0.6), "after": scores(0.5)})) == []


def test_the_worst_comes_first():
    sick = run(loss=lambda i: 0.0, rollouts_truncated=lambda i: 0.5, mismatch_mean=lambda i: 0.1)
    assert [f.severity for f in diagnose(sick)] == ["error", "warning", "note"]


def test_adapters_are_named_where_they_are_all_that_is_trained():
    adapted = {"policy": {"lora": {"rank": 4}}}
    for still in (run(update_changed=lambda i: 0.0), run(gradient_norm=lambda i: 0.0)):
        assert names(replace(still, recipe=adapted)) == ["dead adapters"]


def test_the_worst_action_is_named_by_step_group_rollout_and_token():
    off = run(mismatch_mean=lambda i: 0.02, mismatch_max=lambda i: 0.5 + (i == 3))
    where = {
        "sampler_mismatch/max_rollout": 2.0,
        "sampler_mismatch/max_action": 7.0,
        "sampler_mismatch/max_token": 11.0,
    }
    steps = [m | where for m in off.steps]
    groups = [
        GroupSummary(3, MIXED, task="b", trained_rollouts=(0, 3)),
        GroupSummary(3, MIXED, task="c", trained_rollouts=(1,)),
    ]
    finding = one(replace(off, steps=tuple(steps), groups=tuple(groups)))
    assert finding.locations == (Location(3, "c", 1, 7, 11),)  # b's two are 0 and 1
    assert str(finding.locations[0]) == "step 3, task c, rollout 1, action 7, token 11"


def test_cut_rollouts_and_flat_groups_are_named():
    cut = run(groups=every(cut=(1, 3)), rollouts_truncated=lambda i: 0.5)
    assert one(cut).locations == (
        Location(30, "sum", 1),
        Location(30, "sum", 3),
        Location(31, "sum", 1),
    )


def test_correlations_are_within_groups():
    # deviations (-1, 1) with (-1, 1), and (-1, 1) with (2, -2): -2 / sqrt(4 x 10)
    groups = [
        GroupSummary(0, (0.0, 2.0), lengths=(5.0, 7.0)),
        GroupSummary(0, (8.0, 10.0), lengths=(9.0, 5.0)),
    ]
    assert within_group_correlation(groups, "lengths") == pytest.approx(-2 / math.sqrt(40))
    assert math.isnan(
        within_group_correlation([GroupSummary(0, (1.0, 1.0), lengths=(2.0, 3.0))], "lengths")
    )
