"""Run the stages of a pipeline that are not finished, one after another."""

import gc
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

import torch

from grupo.distributed.base import Ranks
from grupo.distributed.exchange import broadcast_from_rank_0, exchange_json
from grupo.distributed.phase import Phase
from grupo.distributed.start import started_ranks
from grupo.pipeline.begin import begin_recipe
from grupo.pipeline.merge import Merged
from grupo.pipeline.pipeline import Pipeline, Visit, visits
from grupo.pipeline.pipeline_file import check_resumable_pipeline, pipeline_text, read_pipeline
from grupo.pipeline.progress import PipelineProgress
from grupo.pipeline.validate import check_pipeline
from grupo.storage.atomic_files import make_folder, remove_unfinished, write_atomically
from grupo.storage.checkpoint import explain_disk_errors
from grupo.storage.fault_injection import kill_point
from grupo.storage.lock import Lock
from grupo.storage.pipeline_dirs import PIPELINE, SUMMARY, is_pipeline
from grupo.training.callbacks import Callback, NullCallback
from grupo.training.resume.run_dir import LOCK, RECIPE, RunFolder, unused_folder
from grupo.util.errors import ConfigError
from grupo.util.user_paths import no_run_message

CallbackOfFolder = Callable[[Path], Callback]  # the callback of a stage, from its folder


def no_callback(folder: Path) -> Callback:
    """A callback that ignores all events."""
    return NullCallback()


def run_pipeline(
    pipeline: Pipeline, run: str | Path = "", callback_of: CallbackOfFolder = no_callback
) -> Path:
    """Run a pipeline in a new folder and return the folder.

    Args:
        pipeline: The pipeline.
        run: The new folder; by default a folder under `runs/`, named by date and time.
        callback_of: The callback of a stage, from the stage's folder.

    Raises:
        ConfigError: A stage cannot work, or the folder is not empty; raised before any work.
        ConditionFailedError: The condition of a stage does not hold.
    """
    check_pipeline(pipeline)
    return begin_pipeline(pipeline, run, callback_of)


def begin_pipeline(
    pipeline: Pipeline, run: str | Path = "", callback_of: CallbackOfFolder = no_callback
) -> Path:
    """As `run_pipeline`, for a pipeline that was checked."""
    ranks = started_ranks()
    root = Path(
        broadcast_from_rank_0(ranks, str(run or unused_folder()), Phase.PIPELINE_FOLDER_NAMED)
    )
    with _create(pipeline, root, ranks):
        run_stages(pipeline, root, callback_of, ranks)
    return root


def resume_pipeline(run: str | Path, callback_of: CallbackOfFolder = no_callback) -> Path:
    """Resume a pipeline that was stopped at any moment; it ends with the same weights.

    Args:
        run: The folder of the pipeline.
        callback_of: The callback of a stage, from the stage's folder.

    Raises:
        ConfigError: The folder holds no pipeline, or one with objects that were in memory.
    """
    root, ranks = Path(run), started_ranks()
    if not is_pipeline(root):
        raise ConfigError(no_run_message(root))
    pipeline = read_pipeline(root)
    check_resumable_pipeline(pipeline, root)
    with _lock(root, ranks):
        run_stages(pipeline, root, callback_of, ranks)
    return root


def run_stages(pipeline: Pipeline, root: Path, callback_of: CallbackOfFolder, ranks: Ranks) -> None:
    """Run every stage that is not finished.

    Args:
        pipeline: The pipeline.
        root: Its folder, which this process has locked.
        callback_of: The callback of a stage, from the stage's folder.
        ranks: The processes that train together.
    """
    progress = PipelineProgress(pipeline)
    all_visits = list(visits(pipeline, root.resolve()))
    for visit in all_visits:
        is_skipped = False
        if not broadcast_from_rank_0(ranks, (visit.folder / SUMMARY).is_file(), Phase.STAGE_FOUND):
            is_skipped = progress.must_skip(visit)
            callback = callback_of(visit.folder) if ranks.rank == 0 else NullCallback()
            callback.on_message(describe_visit(visit, len(all_visits), skipped=is_skipped))
            if not is_skipped:
                _run_stage(visit, progress, callback, ranks)
        progress.record(visit, skipped=is_skipped)


def _run_stage(visit: Visit, progress: PipelineProgress, callback: Callback, ranks: Ranks) -> None:
    """Run one stage to its end and release its models."""
    kill_point("stage/begin")
    exists = broadcast_from_rank_0(ranks, (visit.folder / RECIPE).is_file(), Phase.STAGE_FOUND)
    recipe = RunFolder.open(visit.folder).recipe if exists else begin_recipe(visit, progress, ranks)
    visit.stage.run(visit.folder, recipe, callback, ranks)
    exchange_json(ranks, None, Phase.STAGE_ENDED)  # its last files are written
    release_memory()
    kill_point("stage/ended")


def release_memory() -> None:
    """Free the models and optimizers of a stage that has ended, which refer to each other."""
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def describe_visit(visit: Visit, total: int, *, skipped: bool = False) -> str:
    """A line about a stage that begins or is skipped.

    Args:
        visit: The stage.
        total: Number of stages in all rounds.
        skipped: Whether its condition does not hold.
    """
    name = f"{visit.stage.name}, round {visit.round_number}" * bool(visit.round_number > 1)
    line = f"Stage {visit.number} of {total}, {name or visit.stage.name}"
    if skipped:
        return f"{line}: skipped, because {visit.stage.when!r} does not hold."
    if not visit.start:
        return f"{line}, begins with the policy of its recipe."
    start = visit.start
    source = f"merged weights of {', '.join(start.names)}" if isinstance(start, Merged) else start
    return f"{line}, begins from {source}."


def _create(pipeline: Pipeline, root: Path, ranks: Ranks) -> AbstractContextManager[Any]:
    """Write the pipeline into a new folder and lock it."""
    if ranks.rank:
        exchange_json(ranks, None, Phase.PIPELINE_FOLDER_CREATED)
        return nullcontext()
    RunFolder.check_empty(root)
    with explain_disk_errors("The pipeline is not begun"), ExitStack() as cleanup:
        make_folder(root)
        kill_point("pipeline/folder")
        lock = cleanup.enter_context(Lock(root / LOCK))
        RunFolder.check_empty(root)
        remove_unfinished(root)
        text = pipeline_text(pipeline)
        write_atomically(root / PIPELINE, text, kill_point_prefix="pipeline/file")
        cleanup.pop_all()
    exchange_json(ranks, None, Phase.PIPELINE_FOLDER_CREATED)
    return lock


def _lock(root: Path, ranks: Ranks) -> AbstractContextManager[Any]:
    if ranks.rank:
        return nullcontext()
    with explain_disk_errors("The pipeline is not resumed"):
        lock = Lock(root / LOCK)
        remove_unfinished(root)
    return lock
