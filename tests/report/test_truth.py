"""The step after which a reward and a measured truth part."""

from dataclasses import replace

from tests.helpers.run_evidence import MEASURED, TRUTH, finding_names, only_finding, run


def curve(i: int) -> float:
    """0.3 at first, 0.7 at i = 20, and 0.168 at i = 39."""
    return 0.3 + 0.02 * min(i, 20) - 0.028 * max(0, i - 20)


def test_the_finding_names_the_last_step_of_the_highest_window():
    # windows of 4 steps: (.66 + .68 + .7 + .672) / 4 = .678 at i = 18 to 21, steps 19 to 22
    finding = only_finding(replace(run(reward_right=curve), recipe=MEASURED))
    assert finding.locations[0].step == 22
    # the reward is .3 + .01 i; the last window, i = 36 to 39, has .3 + .375 and .7 - .028 * 17.5
    assert (
        "part after step 22: the reward was 0.495 there and is 0.675 now, and the term was 0.678"
        " and is 0.21 (means over 4 steps)."
    ) in finding.details


def test_a_term_with_a_weight_is_no_truth():
    weighted = {"env": {"rewards": {"tuple": [{**TRUTH, "weight": 1.0}]}}}
    assert finding_names(replace(run(reward_right=curve), recipe=weighted)) == []


def test_a_reward_that_falls_with_the_truth_is_no_parting():
    falling = run(reward_right=curve, reward_mean=curve)
    assert finding_names(replace(falling, recipe=MEASURED)) == ["reward dropped"]


def test_noise_of_the_truth_is_no_parting():
    noisy = run(reward_right=lambda i: 0.5 + 0.1 * (i % 2))  # every window has a mean of .55
    assert finding_names(replace(noisy, recipe=MEASURED)) == []


def test_a_run_that_is_too_short_for_three_windows_has_no_finding():
    assert (
        finding_names(replace(run(8, reward_right=lambda i: 0.5 - 0.05 * i), recipe=MEASURED)) == []
    )
