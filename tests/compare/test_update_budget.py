"""The update plans of a comparison: shared, per method, or fixed."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from grupo.algo.minibatches import SingleUpdate, Updates
from grupo.compare import (
    Comparison,
    Steps,
    manifest,
    recipes_with_methods,
    summary_text,
    table_formats,
    tables,
)
from grupo.compare.experiment import run_specs
from grupo.compare.inert_methods import inert_method_caveats
from grupo.compare.run import estimate_cost
from grupo.compare.update_budget import (
    FixedUpdates,
    describe_all_updates,
    parse_update_rule,
    per_method,
    shared,
)
from grupo.compare.validate import validate_comparison
from grupo.methods.gspo import gspo
from grupo.util.errors import ConfigError
from grupo.util.run_files import COMPARISON_FILE


@pytest.fixture
def both(recipe) -> Comparison:
    """GRPO with one update per step, and GSPO with four minibatches."""
    methods = {"grpo": recipe.method.replace(updates=SingleUpdate()), "gspo": gspo(group_size=4)}
    return Comparison(recipes_with_methods(recipe, methods), Steps(2))


def plans(comparison: Comparison) -> dict[str, object]:
    """The update plan of the runs of each recipe."""
    return {run.name: run.recipe.method.updates for run in run_specs(comparison, Path("out"))}


def test_default_is_the_plan_of_the_baseline(both):
    assert plans(both) == {"grpo": SingleUpdate(), "gspo": SingleUpdate()}
    other = replace(both, baseline="gspo")
    assert plans(other) == dict.fromkeys(("grpo", "gspo"), Updates(minibatches=4))


def test_per_method_and_fixed_plans(both):
    assert plans(replace(both, updates=per_method)) == {
        "grpo": SingleUpdate(),
        "gspo": Updates(minibatches=4),
    }
    fixed = replace(both, updates=FixedUpdates(Updates(epochs=2)))
    assert plans(fixed) == dict.fromkeys(("grpo", "gspo"), Updates(epochs=2))


def test_only_the_update_plan_of_a_method_is_replaced(both):
    (run,) = (run for run in run_specs(both, Path("out")) if str(run) == "gspo, seed 0")
    assert run.recipe.method == gspo(group_size=4).replace(updates=SingleUpdate())


def test_rules_are_parsed_from_words_and_plans():
    assert [parse_update_rule("shared"), parse_update_rule("per-method")] == [shared, per_method]
    assert parse_update_rule("Updates(2, minibatches=4)") == FixedUpdates(Updates(2, 4))


@pytest.mark.parametrize("text", ["shard", "4", "SingleUpdate", "Updates(0.5)", "Updates(x=2)"])
def test_invalid_rules_are_rejected(text):
    with pytest.raises(ConfigError, match="updates: "):
        parse_update_rule(text)


def test_recipes_that_differ_only_in_updates_need_per_method_plans(both):
    four = both.recipes["grpo"].replace(
        method=both.recipes["grpo"].method.replace(updates=Updates(4))
    )
    recipes = {"once": both.recipes["grpo"], "four times": four}
    with pytest.raises(ConfigError, match="shared makes 'once' and 'four times' equal"):
        validate_comparison(replace(both, recipes=recipes))
    validate_comparison(replace(both, recipes=recipes, updates=per_method))
    equal = {"once": four, "again": four}  # equal without the shared plan, too
    validate_comparison(replace(both, recipes=equal))


@pytest.mark.parametrize("updates", [shared, per_method, FixedUpdates(Updates(3))])
def test_rule_round_trips_through_the_folder(both, updates, tmp_path):
    one = replace(both, updates=updates, seeds=(0,), baseline="grpo")
    manifest.save_comparison(one, tmp_path)
    assert manifest.load_comparison(tmp_path) == one


def test_folder_without_a_rule_has_per_method_plans(both, tmp_path):
    manifest.save_comparison(both, tmp_path)
    path = tmp_path / COMPARISON_FILE
    data = json.loads(path.read_text())
    path.write_text(json.dumps({name: x for name, x in data.items() if name != "updates"}))
    assert manifest.load_comparison(tmp_path).updates is per_method


def test_updates_are_described_once_or_by_recipe(both):
    assert describe_all_updates(both.run_recipes) == "1 update per step by SingleUpdate()"
    assert describe_all_updates(replace(both, updates=per_method).run_recipes) == (
        "1 update per step by SingleUpdate(): grpo;"
        " 4 updates per step by Updates(epochs=1, minibatches=4): gspo"
    )


def test_caption_has_the_shared_updates(both, measured):
    result = measured({"grpo": [0.2, 0.4], "gspo": [0.3, 0.4]})
    result.comparison.recipes.update(both.recipes)
    caption = summary_text.caption(result)
    assert (
        caption
        == "2 recipes, 2 seeds, 1 task set; 3 steps each; updates shared: 1 update per step by"
        " SingleUpdate()."
    )
    assert caption in summary_text.report_markdown(result, [])
    assert rf"\caption{{{caption}}}" in table_formats.latex(tables.main_table(result), caption)


def test_replaced_update_plan_is_a_caveat(both, measured):
    result = measured({"grpo": [0.2, 0.4], "gspo": [0.3, 0.4]})
    result.comparison.recipes.update(both.recipes)
    prefix = "Update plans were held equal"
    lines = [line for line in summary_text.caveats(result) if line.startswith(prefix)]
    assert "gspo, Updates(epochs=1, minibatches=4)." in lines[0]
    assert not any("update plans" in line for line in summary_text.conclusions(result))


def test_per_method_plans_are_in_the_conclusions(both, measured):
    result = measured({"grpo": [0.2, 0.4], "gspo": [0.3, 0.4]}, updates=per_method)
    result.comparison.recipes.update(both.recipes)
    assert summary_text.conclusions(result)[-1] == (
        "The differences of these recipes include the effect of their update plans, because grpo"
        " has 1 update per step by SingleUpdate(): gspo, 4 updates per step by Updates(epochs=1,"
        " minibatches=4). `--updates-per-step shared` separates the two."
    )
    assert not any(
        line.startswith("Update plans were held") for line in summary_text.caveats(result)
    )


def test_cost_estimate_has_the_updates(both, tmp_path):
    estimate = estimate_cost(replace(both, seeds=1), tmp_path / "new", workers=2)
    assert estimate.lines()[1] == "1 update per step by SingleUpdate()"
    assert {run.recipe.method.updates for run in estimate.remaining_runs} == {SingleUpdate()}


def caveats_under(both, plan) -> list[str]:
    """The caveats on inert methods of a comparison in which every recipe has one plan."""
    return list(inert_method_caveats(replace(both, updates=FixedUpdates(plan)).run_recipes))


def test_a_method_whose_ratios_cannot_act_is_named_before_the_run_and_in_the_report(both, measured):
    (caveat,) = inert_method_caveats(both.run_recipes)
    assert caveat.startswith(
        "With 1 update per step by SingleUpdate() every ratio is 1, and the gradient of gspo is"
    )
    result = measured({"grpo": [0.2, 0.4], "gspo": [0.3, 0.4]})
    result.comparison.recipes.update(both.recipes)
    assert f"* {caveat}" in summary_text.report_markdown(result, []).splitlines()


@pytest.mark.parametrize("plan", [Updates(epochs=2), Updates(minibatches=2)])
def test_with_several_updates_no_method_is_inert(both, plan):
    assert caveats_under(both, plan) == []
    assert len(caveats_under(both, SingleUpdate())) == 1  # the positive control


def test_a_method_that_cannot_be_evaluated_has_no_caveat(both):
    unknown = both.recipes["grpo"].method.replace(advantage=lambda x, batch: 1 / 0)
    recipes = recipes_with_methods(both.recipes["grpo"], {"unknown": unknown})
    assert list(inert_method_caveats(recipes)) == []


def test_a_plan_with_more_minibatches_than_groups_names_recipe_and_remedy(both):
    with pytest.raises(ConfigError) as error:
        validate_comparison(replace(both, updates=per_method))
    assert str(error.value) == (
        "gspo: method.updates.minibatches: 4. Allowed: at most 2, the groups of a step"
        " (prompts_per_step), because no group is split. Set prompts_per_step to 4 or more, or"
        " method.updates to Updates(epochs=1, minibatches=2)."
    )
    validate_comparison(replace(both, updates=FixedUpdates(Updates(minibatches=2))))
