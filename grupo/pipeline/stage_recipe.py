"""Makes the recipe with which a stage runs: sets its seed, start weights, tasks and models."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from grupo.core.component import component_fields
from grupo.distributed.base import Ranks
from grupo.distributed.exchange import broadcast_from_rank_0
from grupo.distributed.phase import Phase
from grupo.models.start_weights import StartWeights
from grupo.pipeline.export import with_resolved_model_folders
from grupo.pipeline.merge import MergedWeights, WeightMerge
from grupo.pipeline.pipeline import StageExecution
from grupo.pipeline.progress import PipelineProgress
from grupo.pipeline.sources import DrawnEvalTasks, with_resolved_task_sources
from grupo.pipeline.stages import OWN_POLICY
from grupo.recipe import Recipe
from grupo.storage.atomic_files import (
    fsync_dir,
    make_folder,
    remove_temporary_files,
    sha256_of,
    write_new,
)
from grupo.storage.checkpoint import explain_disk_errors
from grupo.storage.fault_injection import kill_point
from grupo.storage.safetensors import file_chunks
from grupo.tasks import EvalShare
from grupo.tasks.in_memory import as_task_source
from grupo.training.resume.load_run import load_checkpoint, policy_of
from grupo.training.resume.run_folder import RunFolder
from grupo.training.resume.start_from import with_model, with_start_weights
from grupo.util.rng import derive_key
from grupo.util.run_files import MERGED_FILE

NUM_SEEDS = 10**9  # the seed of a later round is from 0 to NUM_SEEDS - 1


def recipe_of_round(recipe: Recipe, round_number: int) -> Recipe:
    """The recipe with the seed of a round.

    Held-out tasks that a run draws from its training tasks are drawn with the seed of the first
    round, so that all rounds are evaluated on the same tasks.

    Args:
        recipe: The recipe with the seed of the first round.
        round_number: Number of the round, from 1.
    """
    if round_number == 1:
        return recipe
    seed = derive_key(recipe.seed, "round", round_number) % NUM_SEEDS
    eval_tasks: Any = recipe.eval_tasks
    if isinstance(eval_tasks, EvalShare) or (isinstance(eval_tasks, int) and eval_tasks):
        eval_tasks = DrawnEvalTasks(as_task_source(recipe.tasks), eval_tasks, recipe.seed)
    return recipe.replace(seed=seed, eval_tasks=eval_tasks)


def resolve_stage_references(
    execution: StageExecution, progress: PipelineProgress, ranks: Ranks
) -> Recipe:
    """The recipe of a stage, without references to other stages.

    In their place are start weights, tasks, and the folders of auxiliary models, such as a
    reference policy or a teacher.

    Args:
        execution: The execution of the stage. Its `start` names the weights to start from: a stage,
            a merge of several stages, or the recipe's own policy (`OWN_POLICY`).
        progress: The runs and data of the stages that have ended.
        ranks: The processes that run the stage together. Rank 0 writes merged weights.
    """
    recipe = recipe_of_round(execution.stage.recipe, execution.round_number)
    fields = component_fields(recipe)
    task_fields = {
        name: with_resolved_task_sources(fields[name], progress.resolve_task_source)
        for name in ("tasks", "eval_tasks")
    }
    recipe = with_resolved_model_folders(recipe.replace(**task_fields), progress.model_folder)
    if isinstance(execution.start, WeightMerge):
        return _with_merged_weights(recipe, execution, progress, ranks)
    if execution.start == OWN_POLICY:
        return recipe
    run_folder, checkpoint_name = progress.run_and_checkpoint(execution.start)
    if run_folder is None:  # `start` leads to a stage that trains no policy: its own one stays
        return recipe
    return with_model(recipe, f"{run_folder}@{checkpoint_name}")


def _with_merged_weights(
    recipe: Recipe, execution: StageExecution, progress: PipelineProgress, ranks: Ranks
) -> Recipe:
    """The recipe with merged weights, which rank 0 writes to the folder of the stage."""
    merge = execution.start
    assert isinstance(merge, WeightMerge)
    runs_and_checkpoints = [
        progress.run_and_checkpoint(reference) for reference in merge.references
    ]
    file = execution.folder / MERGED_FILE
    sha256 = _write_merged_weights(file, merge, runs_and_checkpoints) if ranks.rank == 0 else ""
    sha256 = broadcast_from_rank_0(ranks, sha256, Phase.WEIGHTS_MERGED)
    # `check_pipeline` requires that all merged stages have the same model
    first_run_folder, _ = runs_and_checkpoints[0]
    base_model: Any = RunFolder.open(_require_run(first_run_folder)).recipe.policy.model
    return recipe.replace(
        policy=with_start_weights(recipe.policy, base_model, StartWeights(str(file), sha256))
    )


def _write_merged_weights(
    file: Path, merge: WeightMerge, runs_and_checkpoints: list[tuple[Path | None, str]]
) -> str:
    """Write merged weights durably, unless the file exists, and return the SHA-256 of the file.

    Args:
        file: The file for the merged weights.
        merge: The shares of the stages and the rule of the merge.
        runs_and_checkpoints: The run folder and the name of the checkpoint ("best", "last" or a
            step) of each merged stage.
    """
    if file.is_file():
        return sha256_of(file)
    weights_of_stages = [
        _full_weights(_require_run(run_folder), checkpoint_name)
        for run_folder, checkpoint_name in runs_and_checkpoints
    ]
    weights = MergedWeights(weights_of_stages, [share for _, share in merge.pairs], merge.rule)
    with explain_disk_errors("The weights are not merged"):
        make_folder(file.parent)
        remove_temporary_files(file.parent)
        kill_point("merge/begun")
        temporary = file.with_name(f"tmp.{file.name}")
        written = write_new(temporary, file_chunks(weights), kill_point_prefix="merge")
        os.replace(temporary, file)
        kill_point("merge/renamed")
        fsync_dir(file.parent)
    return written.sha256


def _full_weights(run_folder: Path, checkpoint_name: str) -> Mapping[str, Tensor]:
    """All weights of a run's model by name, with its adapters merged into them.

    If the run has no adapters, each tensor is read from the checkpoint when it is used.
    """
    recipe = RunFolder.open(run_folder).recipe
    loaded_checkpoint = load_checkpoint(run_folder, recipe, checkpoint_name)
    policy: Any = recipe.policy
    if not policy.trains_adapters:
        return loaded_checkpoint.tensors["weights"]
    loaded_policy: Any = policy_of(recipe, loaded_checkpoint)
    return dict(loaded_policy.merged_model().named_parameters())


def _require_run(run_folder: Path | None) -> Path:
    assert run_folder is not None, "check_pipeline refuses a merge of stages without a run"
    return run_folder
