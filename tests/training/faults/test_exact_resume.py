"""Equal runs are equal bit for bit, and the comparison detects incorrect resumes."""

import pytest

from tests.helpers.fast_cases import fast_cases
from tests.helpers.run_outcomes import differences, outcome


@pytest.mark.parametrize(
    "recipe",
    fast_cases(1, ["grpo", "lora", "late", "again", "turns", "roles", "frozen main policy"]),
)
def test_runs_of_the_same_recipe_are_bitwise_equal(recipe, training_process, tmp_path):
    assert training_process("train", tmp_path / "run", recipe=recipe).succeeded
    first = training_process.uninterrupted(recipe).outcome
    assert differences(first, outcome(tmp_path / "run")) == []


def test_another_seed_gives_another_run(training_process):
    first = training_process.uninterrupted("grpo").outcome
    second = training_process.uninterrupted("other seed").outcome
    changed = {"metrics", "rollouts", "weights", "optimizer", "eval_scores"}
    assert changed <= {*differences(first, second)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "corruption", "changed"),
    [
        ("grpo", "optimizer", {"weights", "optimizer", "metrics"}),
        ("grpo", "curriculum", {"rollouts", "weights", "history"}),
        ("grpo", "weights", {"weights", "optimizer", "metrics"}),
        ("grpo", "step", {"rollouts", "metrics", "weights"}),
        ("grpo", "scores", {"eval_scores", "summary"}),
        ("grpo", "counts", {"generated_tokens", "summary"}),
        ("task history", "task history", {"task history", "weights", "metrics"}),
        ("sources", "source history", {"task history", "rollouts", "weights"}),
        ("replay", "replays", {"history", "weights", "metrics"}),
        ("replaced", "replays", {"history", "weights", "metrics"}),
        ("exemplified", "demonstrations", {"rollouts", "weights", "metrics"}),
        ("ema", "average", {"ema"}),
        ("windows", "unfinished", {"rollouts", "weights", "metrics"}),
        ("tokens per step", "unfinished groups", {"rollouts", "weights", "metrics"}),
        ("tokens per step", "replies", {"rollouts", "weights", "metrics"}),
    ],
)
def test_an_incorrect_resume_is_detected(recipe, corruption, changed, training_process, tmp_path):
    run = tmp_path / "run"
    assert training_process("train", run, recipe=recipe, kill="step/begin:4").killed
    assert training_process("resume corrupted", run, corruption=corruption).succeeded
    assert changed <= {*differences(training_process.uninterrupted(recipe).outcome, outcome(run))}


@pytest.mark.slow
def test_a_resume_with_a_later_reference_policy_is_detected(training_process, tmp_path):
    run = tmp_path / "run"
    assert training_process("train", run, recipe="kl", kill="step/begin:4").killed
    assert training_process("resume with later reference", run).succeeded
    changed = {*differences(training_process.uninterrupted("kl").outcome, outcome(run))}
    assert {"metrics", "weights", "optimizer"} <= changed
