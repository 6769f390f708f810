"""Checks of a pipeline before any stage begins."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from grupo.config.validate import check_recipe
from grupo.config.validate_tasks import load_tasks
from grupo.core.aux_heads import ReadsHeads
from grupo.core.component import to_code, walk
from grupo.core.non_json import describe_non_json
from grupo.core.serialization import to_data
from grupo.core.types import Task
from grupo.models.causal_lm import CausalLM
from grupo.models.model_size import read_parameter_shapes
from grupo.pipeline.collect import ROWS_FILE
from grupo.pipeline.export import stages_used_as_rewards
from grupo.pipeline.merge import WeightMerge, check_same_shapes
from grupo.pipeline.pipeline import (
    Pipeline,
    check_stage_outputs,
    parse_reference,
    start_references,
)
from grupo.pipeline.program_stage import ProgramStage
from grupo.pipeline.sources import task_sources_from_stages
from grupo.pipeline.stages import ExportStage, PipelineStage, is_training_stage
from grupo.pipeline.survey import SURVEY_FILE
from grupo.rollouts.eval_scores import check_eval_metric
from grupo.tasks import split_tasks
from grupo.util.errors import ConfigError


def check_pipeline(pipeline: Pipeline) -> None:
    """Raise `ConfigError` for the first stage that cannot work, without loading weights.

    Two kinds of tasks are checked only when their stage begins: tasks that an earlier stage writes,
    and tasks that are scored by a model that an earlier stage exports.
    """
    check_stage_outputs(pipeline)
    for round_number in range(1, min(pipeline.rounds, 2) + 1):  # later rounds are like the second
        for index in range(len(pipeline.stages)):
            _check_start(pipeline, index, round_number)
    has_held_out_tasks: dict[str, bool] = {}
    for stage in pipeline.stages:
        with stage_name_in_errors(stage):
            check_recipe(stage.recipe)
            _check_read_heads(stage)
            if not task_sources_from_stages(stage.recipe):
                has_held_out_tasks[stage.name] = bool(_checked_held_out_tasks(stage))
    for index in range(len(pipeline.stages)):
        _check_condition(pipeline, index, has_held_out_tasks)
    # raises for values that no file can hold, and not for objects such as functions
    to_data(pipeline, "pipeline", on_non_json=describe_non_json)


def _check_read_heads(stage: PipelineStage) -> None:
    """Raise `ConfigError` for a strategy that reads a head in a stage that writes data.

    Such a stage has the weights of a model, without the heads that a run trains beside it.
    """
    if stage.output_name in (ROWS_FILE, SURVEY_FILE):
        strategy = stage.recipe.evaluation.turn_strategy
        for part in walk(strategy):
            head_names = part.read_heads if isinstance(part, ReadsHeads) else ()
            if head_names:
                raise ConfigError(
                    f"evaluation.turn_strategy: {to_code(part)} reads the head"
                    f" {head_names[0]!r}, and a {type(stage).__name__} loads no heads."
                    " Allowed: ByReward(LearnedReward('stage:NAME')) after an ExportStage."
                )


def _checked_held_out_tasks(stage: PipelineStage) -> Sequence[Task]:
    """Check all tasks of a stage and return its held-out tasks.

    The tasks are not checked if a reward is a model that is not exported yet.
    """
    recipe = stage.recipe
    if stages_used_as_rewards(recipe):
        return split_tasks(recipe.tasks, recipe.eval_tasks, recipe.seed)[1]
    tasks, held_out = load_tasks(recipe)
    if isinstance(stage, ProgramStage):
        stage.check_tasks(tasks)
    return held_out


@contextmanager
def stage_name_in_errors(stage: PipelineStage) -> Generator[None]:
    """A context in which the message of a `ConfigError` begins with the name of the stage."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{stage.name}: {error}") from error


def training_stage(pipeline: Pipeline, name: str, round_number: int = 1) -> PipelineStage | None:
    """The stage that trained the weights which a reference to the stage `name` yields.

    A reference to a training stage stands for the weights that it trains. A reference to a stage
    that only writes data stands for the weights that it starts from. The result is None if no stage
    trains these weights.

    Args:
        pipeline: The pipeline.
        name: Name of the stage that is referred to.
        round_number: Number of the round, from 1.
    """
    stage = pipeline.stage(name)
    if is_training_stage(stage):
        return stage
    index = pipeline.names.index(name)
    references = start_references(pipeline.start_of(index, round_number))
    if not references:
        return None
    # Each call moves to an earlier stage, so the recursion ends. Only the first stage of a later
    # round starts from the last stage. The search then goes on in round 1, which has the same
    # stages and whose first stage has no such start.
    return training_stage(
        pipeline, parse_reference(references[0]).stage, 1 if index == 0 else round_number
    )


def _check_start(pipeline: Pipeline, index: int, round_number: int) -> None:
    """Raise `ConfigError` unless the policy of a stage can load the weights that it starts from."""
    stage, start = pipeline.stages[index], pipeline.start_of(index, round_number)
    start_stages = [
        (reference, training_stage(pipeline, parse_reference(reference).stage, round_number))
        for reference in start_references(start)
    ]
    for reference, source in start_stages:
        has_checkpoint = "@" in reference  # as in "sft@best"
        needs_trained_weights = (
            isinstance(start, WeightMerge) or has_checkpoint or isinstance(stage, ExportStage)
        )
        if source is None and needs_trained_weights:
            raise ConfigError(
                f"{stage.name}: start: {reference!r} has no trained weights. Allowed: a stage that"
                " trains, or a stage that starts from such a stage."
            )
    training_stages = [source for _, source in start_stages if source is not None]
    for source in training_stages:
        _check_policies(stage, source, is_merge=isinstance(start, WeightMerge))
    if isinstance(start, WeightMerge):
        _check_shapes(stage, training_stages)


def _check_policies(stage: PipelineStage, source: PipelineStage, *, is_merge: bool) -> None:
    """Raise `ConfigError` unless the policy of `stage` can load the weights of `source`.

    Both policies must be a `CausalLM` with the folder or name of a model. Unless the stage starts
    from a merge, they must have the same model, and the same adapters if both have adapters.
    """
    policy, source_policy = stage.recipe.policy, source.recipe.policy
    for owner, spec in ((stage, policy), (source, source_policy)):
        if not isinstance(spec, CausalLM) or not isinstance(spec.model, str):
            raise ConfigError(
                f"{stage.name}: start: {source.name!r}, and the policy of {owner.name!r} is"
                f" {_describe_policy(spec)}. Allowed: a CausalLM with the folder or name of its"
                " model."
            )
    assert isinstance(policy, CausalLM)
    assert isinstance(source_policy, CausalLM)
    if is_merge:
        return
    if policy.model != source_policy.model:
        raise ConfigError(
            f"{stage.name}: policy.model: {policy.model!r}, and the stage starts from"
            f" {source.name!r}, whose model is {source_policy.model!r}. Allowed: the same model;"
            ' or start="", which takes the policy as it is.'
        )
    if policy.lora and source_policy.lora and policy.lora != source_policy.lora:
        raise ConfigError(
            f"{stage.name}: policy.lora: {policy.lora!r}, and the adapters of {source.name!r} are"
            f" {source_policy.lora!r}. Allowed: the same adapters, which the stage trains further;"
            " or None, which merges the adapters into the model and trains all weights."
        )


def _describe_policy(policy: Any) -> str:
    kind = type(policy).__name__
    return f"a {kind} in memory" if isinstance(policy, CausalLM) else f"a {kind}"


def _check_shapes(stage: PipelineStage, sources: list[PipelineStage]) -> None:
    """Raise `ConfigError` unless the models of `sources` and of `stage` have the same shapes."""
    stage_of_model: dict[str, str] = {}
    for source in (*sources, stage):
        policy: Any = source.recipe.policy
        stage_of_model.setdefault(policy.model, source.name)
    if len(stage_of_model) > 1:
        with stage_name_in_errors(stage):
            shapes = [read_parameter_shapes(model) for model in stage_of_model]
            check_same_shapes(shapes, [repr(name) for name in stage_of_model.values()])


def _check_condition(pipeline: Pipeline, index: int, has_held_out_tasks: dict[str, bool]) -> None:
    """Raise `ConfigError` if the condition of a stage reads a metric that is never measured.

    The condition reads an evaluation of the stage from which this stage starts.

    Args:
        pipeline: The pipeline.
        index: Index of the stage with the condition.
        has_held_out_tasks: Whether a stage has held-out tasks, by the name of the stage. Stages
            whose tasks do not exist yet are absent.
    """
    stage, start = pipeline.stages[index], pipeline.start_of(index)
    if not stage.when or isinstance(start, WeightMerge):
        return
    source = training_stage(pipeline, parse_reference(start).stage)
    if source is None:
        raise ConfigError(
            f"{stage.name}: when: {stage.when!r}, and no earlier stage is trained."
            " Allowed: when=None."
        )
    attempts = source.recipe.evaluation.attempts
    check_eval_metric(f"{stage.name}: when.metric", stage.when.metric, attempts)
    if not has_held_out_tasks.get(source.name, True):
        raise ConfigError(
            f"{stage.name}: when: {stage.when!r}, and {source.name!r} has no held-out tasks. Hold"
            f" some out with --{source.name}.eval-tasks NUMBER."
        )
