"""Controls: arms whose verdict is known, and what their failure says about a comparison."""

from dataclasses import replace

import pytest

from grupo.compare import Comparison, Steps, manifest, run_comparison, summary_text, tables
from grupo.compare.controls import CONTROLS, RepeatedControl, UntrainedControl
from grupo.compare.experiment import run_specs
from grupo.compare.sequential_design import SequentialDesign
from grupo.compare.validate import validate_comparison
from grupo.util.errors import ConfigError
from tests.helpers.in_process_runs import runs_in_process

UNTRAINED, REPEATED = (control.name for control in CONTROLS)
LOW = [0.1 + 0.01 * seed for seed in range(8)]
HIGH = [0.6 - 0.01 * seed for seed in range(8)]
SAME = [0.6, 0.58, 0.59, 0.56, 0.57, 0.54, 0.55, 0.52]


def first_conclusion(result) -> str:
    return summary_text.conclusions(result)[0]


def test_controls_with_the_expected_verdicts_are_stated(measured):
    values = {"base": HIGH, "mine": SAME, UNTRAINED: LOW, REPEATED: SAME}
    result = measured(values, controls=CONTROLS)
    assert first_conclusion(result) == (
        "As expected: control: untrained, less; control: baseline again, inconclusive."
    )


def test_a_comparison_that_does_not_show_the_effect_of_training_cannot_conclude(measured):
    values = {"base": HIGH, "mine": LOW, UNTRAINED: SAME, REPEATED: SAME}
    result = measured(values, controls=CONTROLS)
    assert first_conclusion(result).startswith(
        "This comparison cannot conclude anything: even the effect of the baseline's training is"
        " not shown. control: untrained: inconclusive, "
    )


def test_a_comparison_in_which_a_recipe_differs_from_itself_cannot_conclude(measured):
    values = {"base": HIGH, "mine": SAME, UNTRAINED: LOW, REPEATED: LOW}
    result = measured(values, controls=CONTROLS)
    assert first_conclusion(result).startswith(
        "This comparison cannot conclude anything: the same recipe with other seeds differs from"
        " itself. control: baseline again: less, "
    )


def test_controls_do_not_share_alpha_with_the_recipes(measured):
    values = {"base": HIGH, "mine": LOW}
    alone = measured(values).differences[0]
    controlled = measured({**values, UNTRAINED: LOW, REPEATED: SAME}, controls=CONTROLS)
    assert controlled.differences == [alone]
    assert [row[0] for row in tables.main_table(controlled)[1:]].count(UNTRAINED) == 1


def test_unfinished_controls_have_no_verdict_yet(measured):
    design = SequentialDesign(max_pairs=8, looks=(6, 8))
    values = {"base": HIGH, "mine": LOW, UNTRAINED: ["waiting"] * 8, REPEATED: ["waiting"] * 8}
    result = measured(values, controls=CONTROLS, design=design)
    assert first_conclusion(result) == "control: untrained: no verdict yet."


def test_recipes_of_controls(recipe):
    untrained = UntrainedControl().apply(recipe)
    assert (untrained.max_steps, untrained.learning_rate, untrained.seed) == (1, 0.0, recipe.seed)
    assert RepeatedControl().apply(recipe) == recipe.replace(seed=recipe.seed + 1_000_003)


@pytest.mark.slow
def test_controls_are_trained_and_reported(comparison, tmp_path):
    small = replace(comparison, seeds=1, controls=CONTROLS, metric="reward")
    with runs_in_process():
        result = run_comparison(small, tmp_path)
    assert manifest.load_comparison(tmp_path).controls == CONTROLS
    used = {run.run_spec.name: run["steps"] for run in result.run_statuses}
    assert used == {"grpo": 3, "plain": 3, UNTRAINED: 1, REPEATED: 3}
    seeds = {run.name: run.recipe.seed for run in run_specs(small, tmp_path)}
    assert seeds == {"grpo": 0, "plain": 0, UNTRAINED: 0, REPEATED: 1_000_003}
    assert not any("% of the budget" in line for line in summary_text.caveats(result))


def test_controls_need_a_metric_that_training_raises(recipe):
    comparison = Comparison({"one": recipe}, Steps(1), controls=CONTROLS)
    validate_comparison(comparison)
    with pytest.raises(ConfigError, match=r"controls: none are known for metric 'tokens'. Allowed"):
        validate_comparison(replace(comparison, metric="tokens"))


def test_a_recipe_with_the_name_of_a_control_is_rejected(recipe):
    comparison = Comparison({"control-untrained": recipe}, Steps(1))
    validate_comparison(comparison)
    with pytest.raises(ConfigError, match=r"'control-untrained' is a control. Rename the recipe"):
        validate_comparison(replace(comparison, controls=CONTROLS))
