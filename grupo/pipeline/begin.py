"""The recipe of a stage as it begins: with its seed, its start weights and its tasks."""

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
from grupo.pipeline.export import with_exported
from grupo.pipeline.merge import Merged, MergedWeights
from grupo.pipeline.pipeline import Visit
from grupo.pipeline.progress import PipelineProgress
from grupo.pipeline.sources import DrawnEvalTasks, with_sources
from grupo.recipe import Recipe
from grupo.storage.atomic_files import (
    fsync_dir,
    make_folder,
    remove_unfinished,
    sha256_of,
    write_new,
)
from grupo.storage.checkpoint import explain_disk_errors
from grupo.storage.fault_injection import kill_point
from grupo.storage.safetensors import file_chunks
from grupo.tasks import EvalShare
from grupo.tasks.in_memory import as_task_source
from grupo.training.resume.load_run import load_checkpoint, policy_of
from grupo.training.resume.run_dir import MERGED, RunFolder
from grupo.training.resume.start_from import started_policy, with_model
from grupo.util.rng import derive_key

SEEDS = 10**9  # seeds of later rounds are below


def recipe_of_round(recipe: Recipe, round_number: int) -> Recipe:
    """The recipe with the seed of a round; held-out tasks are those of the first round.

    Args:
        recipe: The recipe.
        round_number: Number of the round, from 1, whose seed is that of the recipe.
    """
    if round_number == 1:
        return recipe
    seed = derive_key(recipe.seed, "round", round_number) % SEEDS
    eval_tasks: Any = recipe.eval_tasks
    if isinstance(eval_tasks, EvalShare) or (isinstance(eval_tasks, int) and eval_tasks):
        eval_tasks = DrawnEvalTasks(as_task_source(recipe.tasks), eval_tasks, recipe.seed)
    return recipe.replace(seed=seed, eval_tasks=eval_tasks)


def begin_recipe(visit: Visit, progress: PipelineProgress, ranks: Ranks) -> Recipe:
    """The recipe of a stage with the weights and the tasks that earlier stages have left.

    Args:
        visit: The stage.
        progress: What the stages before it have left.
        ranks: The processes that train together; the first writes a merge.
    """
    recipe = recipe_of_round(visit.stage.recipe, visit.round_number)
    fields = component_fields(recipe)
    sources = {
        name: with_sources(fields[name], progress.resolve_source)
        for name in ("tasks", "eval_tasks")
    }
    recipe = with_exported(recipe.replace(**sources), progress.model_folder)
    if isinstance(visit.start, Merged):
        return _with_merged(recipe, visit, progress, ranks)
    run, choice = progress.run_of(visit.start) if visit.start else (None, "")
    return with_model(recipe, f"{run}@{choice}") if run else recipe


def _with_merged(recipe: Recipe, visit: Visit, progress: PipelineProgress, ranks: Ranks) -> Recipe:
    """The recipe with merged weights, which are written before the stage begins."""
    merged = visit.start
    assert isinstance(merged, Merged)
    runs = [progress.run_of(name) for name in merged.names]
    file = visit.folder / MERGED
    digest = _write_merge(file, merged, runs) if ranks.rank == 0 else ""
    digest = broadcast_from_rank_0(ranks, digest, Phase.WEIGHTS_MERGED)
    model: Any = RunFolder.open(_run(runs[0][0])).recipe.policy.model
    return recipe.replace(
        policy=started_policy(recipe.policy, model, StartWeights(str(file), digest))
    )


def _write_merge(file: Path, merged: Merged, runs: list[tuple[Path | None, str]]) -> str:
    """Write merged weights durably and return their SHA-256; a complete file is kept."""
    if file.is_file():
        return sha256_of(file)
    sources = [_full_weights(_run(run), choice) for run, choice in runs]
    weights = MergedWeights(sources, [share for _, share in merged.pairs], merged.rule)
    with explain_disk_errors("The weights are not merged"):
        make_folder(file.parent)
        remove_unfinished(file.parent)
        kill_point("merge/begun")
        temporary = file.with_name(f"tmp.{file.name}")
        digest = write_new(temporary, file_chunks(weights), kill_point_prefix="merge")
        os.replace(temporary, file)
        kill_point("merge/renamed")
        fsync_dir(file.parent)
    return digest.sha256


def _full_weights(run: Path, choice: str) -> Mapping[str, Tensor]:
    """All weights of a run's model by name; those without adapters are read one at a time."""
    recipe = RunFolder.open(run).recipe
    saved = load_checkpoint(run, recipe, choice)
    policy: Any = recipe.policy
    if not policy.trains_adapters:
        return saved.tensors["weights"]
    loaded: Any = policy_of(recipe, saved)
    return dict(loaded.merged_model().named_parameters())


def _run(run: Path | None) -> Path:
    assert run is not None, "the pipeline was checked"
    return run
