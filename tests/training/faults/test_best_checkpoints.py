"""Best checkpoints, and runs that end early, with the reason in their summary."""

import json
import os
from pathlib import Path

import pytest

from grupo.rollouts.eval_scores import best_steps
from grupo.storage.checkpoint import CorruptRun
from grupo.training.resume.load_run import load_checkpoint
from grupo.training.resume.run_folder import RunFolder
from grupo.util.errors import ConfigError
from tests.helpers.fast_cases import fast_cases
from tests.helpers.resumed_runs import assert_same_outcome
from tests.helpers.run_outcomes import flip_bit


@pytest.fixture
def run(training_process, tmp_path) -> Path:
    folder = tmp_path / "run"
    assert training_process("train", folder, recipe="best checkpoint").succeeded
    return folder


def summary(run: Path) -> dict:
    return json.loads((run / "summary.json").read_text())


@pytest.mark.slow
def test_the_step_with_the_best_evaluation_is_kept_and_named_in_the_summary(run):
    held_out = summary(run)["held_out"]
    (best,) = best_steps(held_out, 5, "eval/sampled", 1)
    assert summary(run)["best_steps"] == [best]
    assert best not in (3, 5)  # neither saved by save_every nor the last one
    saved = {name for name in os.listdir(run / "checkpoints") if name != "latest"}
    assert saved == {f"step-{best:08d}", "step-00000005"}


@pytest.mark.slow
def test_the_best_the_last_and_a_given_checkpoint_are_loaded(run):
    recipe = RunFolder.open(run).recipe
    (best,) = summary(run)["best_steps"]
    assert load_checkpoint(run, recipe, "best").step == best
    assert load_checkpoint(run, recipe, "last").step == 5
    assert load_checkpoint(run, recipe, str(best)).step == best
    with pytest.raises(ConfigError, match=rf"has none of step 4. Allowed: .* steps {best}, 5\."):
        load_checkpoint(run, recipe, "4")
    with pytest.raises(ConfigError, match=r"checkpoint: 'first'\. Allowed: best, last or the"):
        load_checkpoint(run, recipe, "first")


@pytest.mark.slow
def test_a_damaged_best_checkpoint_is_not_replaced_by_another_one(run):
    recipe = RunFolder.open(run).recipe
    (best,) = summary(run)["best_steps"]
    flip_bit(run / "checkpoints" / f"step-{best:08d}" / "weights.safetensors")
    with pytest.raises(CorruptRun, match=rf"step-{best:08d}/weights.safetensors: its bytes"):
        load_checkpoint(run, recipe, "best")


@pytest.mark.slow
@pytest.mark.parametrize(
    "point", ["save/removing", "save/renamed", "save/committed", "step/logged"]
)
def test_a_run_killed_while_it_keeps_the_best_ends_with_the_same_checkpoints(
    point, training_process, tmp_path
):
    count = training_process.uninterrupted("best checkpoint").points.count(point)
    assert count >= 1
    for number in range(1, count + 1):
        run = tmp_path / str(number)
        assert_same_outcome(training_process, run, "best checkpoint", f"{point}:{number}")
        (best,) = summary(run)["best_steps"]
        saved = {name.partition(".")[0] for name in os.listdir(run / "checkpoints")}
        # one killed in its last removal keeps an older one
        assert saved - {"step-00000003"} == {"latest", f"step-{best:08d}", "step-00000005"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "reason"),
    fast_cases(
        1,
        [
            ("grpo", "max_steps is 5"),
            ("patience", "eval/sampled has not exceeded "),
            ("kl limit", "policy/kl_ref is "),
        ],
    ),
)
def test_the_reason_of_the_end_is_printed_and_in_the_summary(
    recipe, reason, training_process, tmp_path
):
    result = training_process("train", tmp_path / "run", recipe=recipe)
    stopped = summary(tmp_path / "run")
    assert stopped["stop_reason"].startswith(reason)
    expected = f"Training ends at step {stopped['steps']}: {stopped['stop_reason']}."
    assert result.messages == ([] if recipe == "grpo" else [expected])
    assert 1 < stopped["steps"] < 20
