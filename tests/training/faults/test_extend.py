"""A run that is extended, killed and damaged on the way, and the values that may not change."""

import json
import shutil
from pathlib import Path

import pytest

from grupo.storage import fault_injection
from grupo.training.resume.run_folder import RunFolder
from tests.helpers.run_outcomes import differences, files, flip_bit, outcome

FIVE = {"max_steps": 5}


@pytest.fixture
def four(training_process, tmp_path) -> Path:
    """A finished run of four steps, with the recipe of a run of five."""
    assert training_process("train", tmp_path / "run", recipe="grpo of 4").succeeded
    return tmp_path / "run"


def test_an_extended_run_equals_one_of_this_length_from_the_start(four, training_process):
    result = training_process("extend", four, changes=FIVE)
    assert result.succeeded
    assert result.messages == ["max_steps: 5 instead of 4"]
    expected = training_process.uninterrupted("grpo").outcome
    assert differences(expected, outcome(four)) == ["fingerprint"]


@pytest.mark.slow
@pytest.mark.parametrize("point", fault_injection.EXTEND_POINTS)
def test_a_run_killed_while_it_is_extended_is_extended_again(point, four, training_process):
    assert training_process("extend", four, changes=FIVE, kill=f"{point}:1").killed
    is_extended = RunFolder.open(four).recipe.max_steps == 5
    assert is_extended is (point == "extend/recipe/renamed")
    assert training_process("resume" if is_extended else "extend", four, changes=FIVE).succeeded
    expected = training_process.uninterrupted("grpo").outcome
    assert differences(expected, outcome(four)) == ["fingerprint"]


@pytest.mark.slow
def test_a_run_killed_before_it_was_extended_finishes_as_it_was(four, training_process):
    before = files(four)
    assert training_process("extend", four, changes=FIVE, kill="extend/summary_removed:1").killed
    assert not (four / "summary.json").exists()
    assert training_process("resume", four).succeeded
    assert files(four) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "point", ["run/begin:1", "step/logging:1", "save/renamed:1", "save/removing:1", "run/ended:1"]
)
def test_an_extended_run_that_is_killed_resumes_with_the_same_bits(point, four, training_process):
    assert training_process("extend", four, changes=FIVE, kill=point).killed
    assert training_process("resume", four).succeeded
    expected = training_process.uninterrupted("grpo").outcome
    assert differences(expected, outcome(four)) == ["fingerprint"]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["grpo of 4", "schedules of 4", "odd of 3"])
def test_steps_before_the_extension_are_repeated_with_their_own_recipe(
    recipe, training_process, tmp_path
):
    """The newest checkpoint of the first part is lost: a step of it runs again, and is equal."""
    run = tmp_path / "run"
    assert training_process("train", run, recipe=recipe).succeeded
    damaged = shutil.copytree(run, tmp_path / "damaged")
    longer = {"max_steps": 6, "learning_rate": 1e-2, "logged_groups": 1}
    assert training_process("extend", run, changes=longer).succeeded
    assert training_process("extend", damaged, changes=longer, kill="step/logged:1").killed
    for path in damaged.glob(f"checkpoints/step-0000000{recipe[-1]}*"):
        shutil.rmtree(path)
    result = training_process("resume", damaged)
    assert result.succeeded == (recipe != "odd of 3")  # its only checkpoint is lost
    if result.succeeded:
        assert "is used instead" in result.messages[0]
        expected = {**outcome(run), "skipped_checkpoints": ()}
        assert differences(expected, outcome(damaged)) == []


@pytest.mark.slow
def test_the_last_evaluation_becomes_one_during_training(training_process, tmp_path):
    run = tmp_path / "run"
    assert training_process("train", run, recipe="odd of 3").succeeded
    first = json.loads((run / "summary.json").read_text())["held_out"]
    assert training_process("extend", run, changes=FIVE).succeeded
    second = json.loads((run / "summary.json").read_text())["held_out"]
    assert list(first) == ["before", "step 2", "after"]
    assert list(second) == ["before", "step 2", "step 3", "step 4", "after"]
    assert second["step 3"] == first["after"]


@pytest.mark.slow
def test_new_schedules_are_reported_with_their_values(training_process, tmp_path):
    run = tmp_path / "run"
    assert training_process("train", run, recipe="schedules of 4").succeeded
    result = training_process("extend", run, changes={"max_steps": 8})
    # Warmup(0.5, Cosine(2e-2)) after the warm-up is 2e-2 (1 + cos(pi p)) / 2; p = 7/8, then 9/16
    assert result.messages[1].startswith(
        "Schedules follow the progress of the run, and max_steps is now 8. The learning rate was"
        " 0.000761 at step 4 and is 0.00805 at the next step."
    )


@pytest.mark.slow
def test_a_run_is_extended_twice_and_records_both_earlier_recipes(four, training_process):
    assert training_process("extend", four, changes=FIVE).succeeded
    assert training_process("extend", four, changes={"max_steps": 6}).succeeded
    stored = RunFolder.open(four).stored_recipe
    assert [
        (e.recipe.max_steps, e.replaced_at_step, e.run_had_ended) for e in stored.earlier_recipes
    ] == [
        (4, 4, True),
        (5, 5, True),
    ]
    assert [stored.recipe_of_step(step).max_steps for step in (3, 4, 5)] == [4, 5, 6]
    flip_bit(four / "recipe.json", 30)
    assert "was edited or damaged" in training_process("resume", four).error


@pytest.mark.slow
def test_a_run_that_ended_early_goes_on_only_with_another_limit(training_process, tmp_path):
    run = tmp_path / "run"
    assert training_process("train", run, recipe="patient of 20").succeeded
    before = files(run)
    error = training_process("extend", run, changes={"max_steps": 30}).error
    assert error.startswith("ConfigError: run: it would end again at step ")
    assert "early_stopping.patience is 1. Change this limit too." in error
    assert files(run) == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_steps": 3}, "max_steps: 3. Allowed: at least 4, the number of steps already done."),
        ({"seed": 7}, "was begun with seed = 0, not 7. Resume it as it is, or train in another"),
        ({"seed": 7}, "On resuming these fields may change: max_steps, learning_rate, "),
        ({"prompts_per_step": 3}, "was begun with prompts_per_step = 2, not 3."),
    ],
)
def test_changes_of_other_fields_are_refused_and_no_file_changes(
    changes, message, four, training_process
):
    before = files(four)
    assert message in training_process("extend", four, changes=changes).error
    assert files(four) == before


@pytest.mark.slow
def test_a_run_with_the_same_recipe_is_only_resumed(four, training_process):
    before = files(four)
    result = training_process("extend", four, changes={"max_steps": 4})
    assert result.messages == [f"{four} is finished: nothing is left to do."]
    assert files(four) == before
