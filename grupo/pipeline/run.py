"""Running and resuming a pipeline: the stages that are not finished, one after another."""

import gc
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

import torch

from grupo.distributed.base import Ranks
from grupo.distributed.exchange import broadcast_from_rank_0, exchange_json
from grupo.distributed.phase import Phase
from grupo.distributed.start import launched_ranks
from grupo.pipeline.merge import WeightMerge
from grupo.pipeline.pipeline import Pipeline, StageExecution, stage_executions
from grupo.pipeline.pipeline_file import check_resumable_pipeline, pipeline_text, read_pipeline
from grupo.pipeline.progress import PipelineProgress
from grupo.pipeline.stage_recipe import resolve_stage_references
from grupo.pipeline.stages import OWN_POLICY
from grupo.pipeline.validate import check_pipeline
from grupo.storage.atomic_files import make_folder, remove_temporary_files, write_atomically
from grupo.storage.checkpoint import explain_disk_errors
from grupo.storage.fault_injection import kill_point
from grupo.storage.lock import Lock
from grupo.storage.pipeline_dirs import is_pipeline
from grupo.training.callbacks import Callback, NullCallback
from grupo.training.resume.run_folder import RunFolder, unused_folder
from grupo.training.resume.template_texts import with_template_texts
from grupo.util.errors import ConfigError
from grupo.util.run_files import LOCK_FILE, PIPELINE_FILE, RECIPE_JSON, SUMMARY_FILE
from grupo.util.user_paths import no_run_message

CallbackFactory = Callable[[Path], Callback]  # makes the callback of a stage from its folder


def no_callback(folder: Path) -> Callback:
    """A callback that ignores all events."""
    return NullCallback()


def run_pipeline(
    pipeline: Pipeline, run: str | Path = "", make_callback: CallbackFactory = no_callback
) -> Path:
    """Run a pipeline in a new folder and return the folder.

    Args:
        pipeline: The pipeline.
        run: The pipeline's new folder; by default a folder under `runs/`, named by date and time.
        make_callback: Makes the callback of a stage from the folder of the stage.

    Raises:
        ConfigError: Before the first stage: a stage cannot work, or the folder is not empty.
        ConditionFailedError: The condition of a stage with `otherwise="stop"` does not hold.
    """
    check_pipeline(pipeline)
    return run_checked_pipeline(pipeline, run, make_callback)


def run_checked_pipeline(
    pipeline: Pipeline, run: str | Path = "", make_callback: CallbackFactory = no_callback
) -> Path:
    """Run a pipeline that `check_pipeline` accepted; the arguments are those of `run_pipeline`."""
    pipeline = with_template_texts(pipeline)
    ranks = launched_ranks()
    root = Path(
        broadcast_from_rank_0(ranks, str(run or unused_folder()), Phase.PIPELINE_FOLDER_NAMED)
    )
    with _create_locked_folder(pipeline, root, ranks):
        run_stages(pipeline, root, make_callback, ranks)
    return root


def resume_pipeline(run: str | Path, make_callback: CallbackFactory = no_callback) -> Path:
    """Resume a pipeline and return its folder.

    The pipeline may have been stopped at any moment. A stop does not change its final weights.

    Args:
        run: The folder of the pipeline.
        make_callback: Makes the callback of a stage from the folder of the stage.

    Raises:
        ConfigError: The folder has no pipeline. Or the pipeline was begun with objects that its
            file cannot store, such as a lambda.
    """
    root, ranks = Path(run), launched_ranks()
    if not is_pipeline(root):
        raise ConfigError(no_run_message(root))
    pipeline = read_pipeline(root)
    check_resumable_pipeline(pipeline, root)
    with _lock_folder(root, ranks):
        run_stages(pipeline, root, make_callback, ranks)
    return root


def run_stages(
    pipeline: Pipeline, root: Path, make_callback: CallbackFactory, ranks: Ranks
) -> None:
    """Run every stage that is not finished.

    Args:
        pipeline: The pipeline.
        root: The folder of the pipeline. Rank 0 holds its lock.
        make_callback: Makes the callback of a stage from the folder of the stage.
        ranks: The processes that train together.
    """
    progress = PipelineProgress(pipeline)
    executions = list(stage_executions(pipeline, root.resolve()))
    for execution in executions:
        is_skipped = False
        has_ended = (execution.folder / SUMMARY_FILE).is_file()  # every stage writes it at its end
        if not broadcast_from_rank_0(ranks, has_ended, Phase.STAGE_STATUS_READ):
            is_skipped = progress.must_skip(execution)  # may raise ConditionFailedError
            callback = make_callback(execution.folder) if ranks.rank == 0 else NullCallback()
            callback.on_message(describe_execution(execution, len(executions), skipped=is_skipped))
            if not is_skipped:
                _run_stage(execution, progress, callback, ranks)
        progress.record(execution, skipped=is_skipped)


def _run_stage(
    execution: StageExecution, progress: PipelineProgress, callback: Callback, ranks: Ranks
) -> None:
    """Run or continue one stage to its end and release its models."""
    kill_point("stage/begin")
    folder = execution.folder
    has_begun = broadcast_from_rank_0(
        ranks, (folder / RECIPE_JSON).is_file(), Phase.STAGE_STATUS_READ
    )
    if has_begun:
        recipe = RunFolder.open(folder).recipe
    else:
        recipe = resolve_stage_references(execution, progress, ranks)
    execution.stage.run(folder, recipe, callback, ranks)
    exchange_json(ranks, None, Phase.STAGE_ENDED)  # every rank waits until rank 0 wrote all files
    release_memory()
    kill_point("stage/ended")


def release_memory() -> None:
    """Free the memory of a stage that has ended, including objects in reference cycles."""
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def describe_execution(execution: StageExecution, total: int, *, skipped: bool = False) -> str:
    """A message about a stage that begins or is skipped.

    Args:
        execution: The execution of the stage.
        total: Number of executions in all rounds.
        skipped: Whether the stage is skipped, because its condition does not hold.
    """
    suffix = f", round {execution.round_number}" if execution.round_number > 1 else ""
    line = f"Stage {execution.position} of {total}, {execution.stage.name}{suffix}"
    if skipped:
        return f"{line}: skipped, because {execution.stage.when!r} does not hold."
    if execution.start == OWN_POLICY:
        return f"{line}, begins with the policy of its recipe."
    start = execution.start
    if isinstance(start, WeightMerge):
        return f"{line}, begins from merged weights of {', '.join(start.references)}."
    return f"{line}, begins from {start}."


def _create_locked_folder(
    pipeline: Pipeline, root: Path, ranks: Ranks
) -> AbstractContextManager[Any]:
    """Write the pipeline into a new folder, and return the folder's lock, which the caller holds.

    Only rank 0 writes and locks. The other ranks wait for it, and return a context that does
    nothing.
    """
    if ranks.rank:
        exchange_json(ranks, None, Phase.PIPELINE_FOLDER_CREATED)
        return nullcontext()
    RunFolder.check_empty(root)
    with explain_disk_errors("The pipeline is not begun"), ExitStack() as cleanup:
        make_folder(root)
        kill_point("pipeline/folder")
        lock = cleanup.enter_context(Lock(root / LOCK_FILE))
        RunFolder.check_empty(root)
        remove_temporary_files(root)
        text = pipeline_text(pipeline)
        write_atomically(root / PIPELINE_FILE, text, kill_point_prefix="pipeline/file")
        cleanup.pop_all()
    exchange_json(ranks, None, Phase.PIPELINE_FOLDER_CREATED)
    return lock


def _lock_folder(root: Path, ranks: Ranks) -> AbstractContextManager[Any]:
    """Lock the folder of an existing pipeline, and return the lock, which the caller holds.

    Only rank 0 locks. The other ranks return a context that does nothing.
    """
    if ranks.rank:
        return nullcontext()
    with explain_disk_errors("The pipeline is not resumed"):
        lock = Lock(root / LOCK_FILE)
        remove_temporary_files(root)
    return lock
