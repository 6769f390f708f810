"""What a run's bits depend on, what they do not, and that a bad resume would be found out."""

import pytest

from tests.helpers.run_outcomes import differing, outcome


@pytest.mark.parametrize("recipe", ["grpo", "lora", "late", "again", "turns", "roles"])
def test_equal_runs_are_equal_to_the_last_bit(recipe, trainee, tmp_path):
    for number in range(2):
        assert trainee("train", tmp_path / str(number), recipe=recipe).lived
        made = outcome(tmp_path / str(number))
        assert differing(trainee.whole(recipe).outcome_term, made) == []


def test_another_seed_makes_another_run(trainee):
    one, other = trainee.whole("grpo").outcome_term, trainee.whole("other seed").outcome_term
    assert {"metrics", "rollouts", "weights", "optimizer", "scores"} <= {*differing(one, other)}


@pytest.mark.parametrize(
    ("recipe", "forget", "seen"),
    [
        ("grpo", "optimizer", {"weights", "optimizer", "metrics"}),
        ("grpo", "curriculum", {"rollouts", "weights", "history"}),
        ("grpo", "weights", {"weights", "optimizer", "metrics"}),
        ("grpo", "step", {"rollouts", "metrics", "weights"}),
        ("grpo", "scores", {"scores", "summary"}),
        ("grpo", "counts", {"tokens", "summary"}),
        ("past", "past", {"past", "weights", "metrics"}),
        ("replay", "replays", {"history", "weights", "metrics"}),
    ],
)
def test_a_resume_that_forgets_is_seen(recipe, forget, seen, trainee, tmp_path):
    run = tmp_path / "run"
    assert trainee("train", run, recipe=recipe, kill="step/begin:4").killed
    assert trainee("resume badly", run, forget=forget).lived
    assert seen <= {*differing(trainee.whole(recipe).outcome_term, outcome(run))}


def test_a_resume_that_takes_a_later_policy_for_the_reference_is_seen(trainee, tmp_path):
    run = tmp_path / "run"
    assert trainee("train", run, recipe="kl", kill="step/begin:4").killed
    assert trainee("resume against", run).lived
    differences = {*differing(trainee.whole("kl").outcome_term, outcome(run))}
    assert {"metrics", "weights", "optimizer"} <= differences
