"""Checks of a pipeline before any stage begins."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from grupo.config.validate import check_recipe
from grupo.config.validate_tasks import load_tasks
from grupo.core.serialization import to_data
from grupo.core.types import Task
from grupo.core.unwritable import describe
from grupo.models.causal_lm import CausalLM
from grupo.models.model_size import read_parameter_shapes
from grupo.pipeline.export import exported_rewards
from grupo.pipeline.merge import Merged, check_same_shapes
from grupo.pipeline.pipeline import Pipeline, check_sources, split_choice, start_names
from grupo.pipeline.sources import stage_sources
from grupo.pipeline.stages import ExportStage, PipelineStage
from grupo.recipe import Recipe
from grupo.rollouts.eval_scores import check_eval_metric
from grupo.tasks import split_tasks
from grupo.util.errors import ConfigError


def check_pipeline(pipeline: Pipeline) -> None:
    """Raise `ConfigError` for the first stage that cannot work; loads no weights.

    Tasks that a stage is going to write, or whose rewards are a model that a stage is going to
    export, are checked when the stage that reads them begins.
    """
    check_sources(pipeline)
    for round_number in range(1, min(pipeline.rounds, 2) + 1):
        for index in range(len(pipeline.stages)):
            _check_start(pipeline, index, round_number)
    held_out: dict[str, bool] = {}
    for stage in pipeline.stages:
        with named(stage):
            check_recipe(stage.recipe)
            if not stage_sources(stage.recipe):
                held_out[stage.name] = bool(_held_out_tasks(stage.recipe))
    for index in range(len(pipeline.stages)):
        _check_condition(pipeline, index, held_out)
    to_data(pipeline, "pipeline", on_unwritable=describe)  # raises for what no file can hold


def _held_out_tasks(recipe: Recipe) -> Sequence[Task]:
    """The held-out tasks of a recipe, whose tasks are checked unless a reward is yet to be made."""
    if exported_rewards(recipe):
        return split_tasks(recipe.tasks, recipe.eval_tasks, recipe.seed)[1]
    return load_tasks(recipe)[1]


@contextmanager
def named(stage: PipelineStage) -> Iterator[None]:
    """Errors of this block begin with the name of the stage."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{stage.name}: {error}") from error


def trained_stage(pipeline: Pipeline, name: str, round_number: int = 1) -> PipelineStage | None:
    """The stage that trained the weights which a stage stands for; None before any training.

    Args:
        pipeline: The pipeline.
        name: Name of the stage.
        round_number: Number of the round, from 1.
    """
    stage = pipeline.stage(name)
    if not stage.data_file:
        return stage
    index = pipeline.names.index(name)
    references = start_names(pipeline.start_of(index, round_number))
    if not references:
        return None
    return trained_stage(
        pipeline, split_choice(references[0])[0], 1 if index == 0 else round_number
    )


def _check_start(pipeline: Pipeline, index: int, round_number: int) -> None:
    """Raise unless the policy of a stage can have the weights that it starts from."""
    stage, start = pipeline.stages[index], pipeline.start_of(index, round_number)
    sources = [
        (reference, trained_stage(pipeline, split_choice(reference)[0], round_number))
        for reference in start_names(start)
    ]
    for reference, source in sources:
        needs_run = isinstance(start, Merged) or "@" in reference or isinstance(stage, ExportStage)
        if source is None and needs_run:
            raise ConfigError(
                f"{stage.name}: start: {reference!r}, before which nothing is trained. Allowed: a"
                " stage with weights of its own."
            )
    trained = [source for _, source in sources if source is not None]
    for source in trained:
        _check_policies(stage, source, is_merge=isinstance(start, Merged))
    if isinstance(start, Merged):
        _check_shapes(stage, trained)


def _check_policies(stage: PipelineStage, source: PipelineStage, *, is_merge: bool) -> None:
    """Raise unless both policies are models of transformers that share weights and adapters."""
    policy, other = stage.recipe.policy, source.recipe.policy
    for owner, spec in ((stage, policy), (source, other)):
        if not isinstance(spec, CausalLM) or not isinstance(spec.model, str):
            raise ConfigError(
                f"{stage.name}: start: {source.name!r}, and the policy of {owner.name!r} is"
                f" {_described(spec)}. Allowed: a CausalLM with the folder or name of its model."
            )
    assert isinstance(policy, CausalLM)
    assert isinstance(other, CausalLM)
    if is_merge:
        return
    if policy.model != other.model:
        raise ConfigError(
            f"{stage.name}: policy.model: {policy.model!r}, and the stage starts from"
            f" {source.name!r}, whose model is {other.model!r}. Allowed: the same model; or"
            ' start="", which takes the policy as it is.'
        )
    if policy.lora and other.lora and policy.lora != other.lora:
        raise ConfigError(
            f"{stage.name}: policy.lora: {policy.lora!r}, and the adapters of {source.name!r} are"
            f" {other.lora!r}. Allowed: these, which trains them further, or None, which merges"
            " them into the model and trains all weights."
        )


def _described(policy: Any) -> str:
    kind = type(policy).__name__
    return f"a {kind} in memory" if isinstance(policy, CausalLM) else f"a {kind}"


def _check_shapes(stage: PipelineStage, sources: list[PipelineStage]) -> None:
    """Raise unless the models of all merged stages, and of the stage itself, have equal shapes."""
    models: dict[str, str] = {}
    for source in (*sources, stage):
        policy: Any = source.recipe.policy
        models.setdefault(policy.model, source.name)
    if len(models) > 1:
        with named(stage):
            shapes = [read_parameter_shapes(model) for model in models]
            check_same_shapes(shapes, [repr(name) for name in models.values()])


def _check_condition(pipeline: Pipeline, index: int, held_out: dict[str, bool]) -> None:
    """Raise for a condition on a metric that the stage before it does not measure."""
    stage, start = pipeline.stages[index], pipeline.start_of(index)
    if not stage.when or isinstance(start, Merged):
        return
    source = trained_stage(pipeline, split_choice(start)[0])
    if source is None:
        raise ConfigError(
            f"{stage.name}: when: {stage.when!r}, and nothing is trained before. Allowed: None."
        )
    attempts = source.recipe.evaluation.attempts
    check_eval_metric(f"{stage.name}: when.metric", stage.when.metric, attempts)
    if not held_out.get(source.name, True):
        raise ConfigError(
            f"{stage.name}: when: {stage.when!r}, and {source.name!r} holds no tasks out. Hold some"
            f" out with --{source.name}.eval-tasks NUMBER."
        )
