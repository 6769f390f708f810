"""Pipelines that cannot work: one message before any work."""

import time
from dataclasses import replace

import pytest

from grupo.core.limits import ROUNDS, STAGES
from grupo.core.serialization import from_data, to_data
from grupo.envs import RewardTerm, SingleTurn
from grupo.models.lora import Lora
from grupo.pipeline import (
    CollectedTasks,
    CollectStage,
    ExportStage,
    MetricAtLeast,
    Pipeline,
    Stage,
    SurveyedTasks,
    SurveyStage,
    WeightMerge,
    run_pipeline,
)
from grupo.pipeline.validate import check_pipeline
from grupo.recipe import Evaluation
from grupo.rewards import LearnedReward
from grupo.tasks import Between
from grupo.util.errors import ConfigError
from tests.helpers.pipelines import PIPELINES, short, with_lora
from tests.helpers.training_components import WIDE


@pytest.fixture
def recipe(model):
    return short(model)


def test_more_stages_or_rounds_than_the_limits_are_refused_at_once(recipe):
    stages = tuple(Stage(f"stage-{i}", recipe) for i in range(STAGES.maximum + 1))
    begun_at = time.monotonic()
    with pytest.raises(ConfigError, match=r"stages: 1,001\. Allowed: at most 1,000 stages\."):
        Pipeline(stages)
    for rounds in (ROUNDS.maximum + 1, 10**18):
        with pytest.raises(
            ConfigError, match=rf"rounds: {rounds}\. Allowed: 1 to {ROUNDS.maximum}"
        ):
            Pipeline((Stage("a", recipe),), rounds=rounds)
    assert time.monotonic() - begun_at < 1


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        (
            [("sft", None), ("sft", None)],
            "two stages are called 'sft'. Allowed: each name once, where",
        ),
        (
            [("a-b", None), ("a_b", None)],
            "two stages are called 'a_b'. Allowed: each name once, where",
        ),
        ([("a/b", None)], "'a/b'. Allowed as a name: letters, digits, _ and -"),
        ([("..", None)], "'..'. Allowed as a name"),
        ([("policy", None)], "'policy'. Allowed as a name: .* of a field of Recipe or Pipeline."),
        (
            [("sft", None), ("rl", "sfr")],
            "'rl': start: 'sfr' is not the name of an earlier stage. Did you mean 'sft'? Allowed:",
        ),
        ([("a", "b"), ("b", None)], "'a': start: 'b' is a later stage. Allowed: no stage, because"),
        ([("a", None), ("b", "b")], "'b': start: 'b' is the stage itself. Allowed: a."),
        ([("a", None), ("b", "a@first")], "'b': start: 'a@first'. Allowed: 'a', 'a@best' or"),
        (
            [("a", None), ("b", WeightMerge({"a": 0.5, "c": 0.5}))],
            "'b': start: 'c' is not the name of an earlier stage.",
        ),
        ([], "\\(\\). Allowed: one or more"),
    ],
)
def test_stages_that_do_not_fit_each_other_are_refused(stages, message, recipe):
    pattern = message if "\\" in message or ".*" in message else message.replace("?", r"\?")
    with pytest.raises(ConfigError, match=f"Pipeline.stages: {pattern}"):
        Pipeline(tuple(Stage(name, recipe, start) for name, start in stages))


def refused(*stages) -> str:
    """The message with which the stages are refused before any work."""
    with pytest.raises(ConfigError) as error:
        run_pipeline(Pipeline(stages), "a folder that is never made")
    return str(error.value)


def test_an_invalid_recipe_is_refused_with_the_name_of_its_stage(recipe):
    message = refused(Stage("a", recipe), Stage("b", recipe.replace(eval_tasks=30)))
    assert message.startswith("b: eval_tasks: 30. Allowed: at most 22,")


def test_a_stage_with_another_model_than_its_start_is_refused(recipe, model):
    wide = recipe.replace(policy=replace(recipe.policy, model=f"{model}/{WIDE}"))
    message = refused(Stage("a", recipe), Stage("b", wide))
    assert message.startswith(f"b: policy.model: '{model}/{WIDE}', and the stage starts from 'a',")


def test_a_policy_that_cannot_have_start_weights_is_refused(recipe, model):
    from tests.helpers.training_recipes import recipe as recipe_of

    masked = recipe_of("masked", model)
    message = refused(Stage("a", recipe), Stage("b", masked))
    assert message.startswith("b: start: 'a', and the policy of 'b' is a MaskedDiffusion. Allowed:")


def test_other_adapters_than_those_of_the_start_are_refused(recipe):
    other = recipe.replace(policy=replace(recipe.policy, lora=Lora(3)))
    message = refused(Stage("a", with_lora(recipe)), Stage("b", other))
    assert message.startswith("b: policy.lora: Lora(rank=3,")


def test_a_merge_of_different_shapes_is_refused_by_name(recipe, model):
    wide = recipe.replace(policy=replace(recipe.policy, model=f"{model}/{WIDE}"))
    merge = WeightMerge({"a": 0.5, "b": 0.5})
    message = refused(Stage("a", recipe), Stage("b", wide, start=""), Stage("c", recipe, merge))
    assert message.startswith("c: start: 'model.embed_tokens.weight' has shape (")
    assert "in 'a' and (" in message
    assert "in 'b'. Allowed: a merge of models with the same shapes." in message


def test_a_merge_of_a_stage_before_any_training_is_refused(recipe):
    merge = WeightMerge({"survey": 0.5, "a": 0.5})
    stages = SurveyStage("survey", recipe), Stage("a", recipe), Stage("b", recipe, merge)
    assert refused(*stages).startswith("b: start: 'survey' has no trained weights.")


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("eval/smapled", "b: when.metric: 'eval/smapled' is no evaluation metric. Did you mean"),
        ("eval/pass@8", "b: when.metric: 'eval/pass@8' is no evaluation metric. Did you mean"),
    ],
)
def test_a_condition_on_a_metric_that_is_not_measured_is_refused(metric, message, recipe):
    stages = Stage("a", recipe), Stage("b", recipe, when=MetricAtLeast(metric, 0.5))
    assert refused(*stages).startswith(message)


def test_a_condition_without_held_out_tasks_is_refused(recipe):
    a = Stage("a", recipe.replace(eval_tasks=0))
    message = refused(a, Stage("b", recipe, when=MetricAtLeast("eval/sampled", 0.5)))
    assert message.endswith("'a' has no held-out tasks. Hold some out with --a.eval-tasks NUMBER.")


def test_a_condition_of_the_first_stage_is_refused(recipe):
    with pytest.raises(
        ConfigError, match=r"'a': when: .* Allowed for a stage that starts from one"
    ):
        Pipeline((Stage("a", recipe, when=MetricAtLeast("eval/sampled", 0.5)),))


def test_tasks_of_a_stage_of_another_kind_are_refused(recipe):
    survey = SurveyStage("survey", recipe)
    message = refused(survey, Stage("b", recipe.replace(tasks=CollectedTasks("survey"))))
    assert message.startswith("b: tasks: CollectedTasks(stage='survey',")
    assert message.endswith(" refers to a SurveyStage. Allowed: a CollectStage.")
    tasks = SurveyedTasks("pairs", Between("pass_rate", 0, 1))
    message = refused(CollectStage("pairs", recipe), Stage("b", recipe.replace(tasks=tasks)))
    assert message.endswith(" refers to a CollectStage. Allowed: a SurveyStage.")


def with_learned_reward(recipe, model: str):
    terms = (RewardTerm("learned", LearnedReward(model)),)
    return recipe.replace(env=SingleTurn(terms), evaluation=Evaluation())


def test_a_model_of_a_stage_that_exports_none_is_refused(recipe):
    later = with_learned_reward(recipe, "stage:a")
    message = refused(Stage("a", recipe), Stage("b", later))
    assert message == "b: model: 'stage:a' refers to a Stage. Allowed: an ExportStage."


def test_a_model_of_an_unknown_or_later_stage_is_refused(recipe):
    later = with_learned_reward(recipe, "stage:exported")
    with pytest.raises(ConfigError, match="'b': model: 'exported' is not the name of an"):
        Pipeline((Stage("a", recipe), Stage("b", later)))
    with pytest.raises(
        ConfigError, match=r"'b': model: 'exported' is a later stage\. Allowed: a\."
    ):
        Pipeline((Stage("a", recipe), Stage("b", later), ExportStage("exported")))


def exported_reward(recipe, **changes):
    """A stage scored by the model that the stage before it exports."""
    later = with_learned_reward(recipe, "stage:exported").replace(**changes)
    return Stage("a", recipe), ExportStage("exported"), Stage("b", later)


def test_a_reward_may_be_the_model_that_an_earlier_stage_is_going_to_export(recipe):
    check_pipeline(Pipeline(exported_reward(recipe)))


def test_tasks_are_held_out_where_a_stage_is_scored_by_an_exported_model(recipe):
    last = Stage("c", recipe, when=MetricAtLeast("eval/sampled", 0.5))
    check_pipeline(Pipeline((*exported_reward(recipe), last)))
    message = refused(*exported_reward(recipe, eval_tasks=0), last)
    assert message.endswith("'b' has no held-out tasks. Hold some out with --b.eval-tasks NUMBER.")


def test_an_export_of_nothing_trained_is_refused(recipe):
    with pytest.raises(ConfigError, match=r"'a': start: ''\. Allowed for an ExportStage: one earl"):
        Pipeline((ExportStage("a"), Stage("b", recipe)))
    message = refused(SurveyStage("survey", recipe), ExportStage("exported"))
    assert message.startswith("exported: start: 'survey' has no trained weights.")


def test_tasks_of_a_stage_that_does_not_exist_are_refused(recipe):
    tasks = CollectedTasks("pairs")
    with pytest.raises(ConfigError, match="'b': tasks: CollectedTasks: 'pairs' is not the"):
        Pipeline((Stage("a", recipe), Stage("b", recipe.replace(tasks=tasks))))


def test_tasks_of_a_stage_cannot_be_read_outside_a_pipeline():
    with pytest.raises(ConfigError, match=r"exists only in a pipeline, once its stage 'a'"):
        CollectedTasks("a").load()


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_are_data(name, model):
    pipeline = PIPELINES[name](model)
    assert from_data(to_data(pipeline, "pipeline")) == pipeline


def test_an_export_stage_has_the_recipe_of_the_stage_that_it_starts_from(recipe):
    stages = Stage("a", recipe), Stage("b", recipe.replace(seed=1))
    pipeline = Pipeline((*stages, ExportStage("last"), ExportStage("first", start="a@1")))
    assert [stage.recipe.seed for stage in pipeline.stages] == [recipe.seed, 1, 1, recipe.seed]
