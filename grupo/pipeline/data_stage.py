"""Functions for stages that write data: load the policy and the tasks, and write the data file."""

import hashlib
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grupo.config.validate import check_tasks
from grupo.config.validate_tasks import load_tasks
from grupo.core.types import Task
from grupo.distributed.base import Ranks
from grupo.models.base import Policy
from grupo.recipe import Recipe
from grupo.storage import strict_json
from grupo.storage.atomic_files import (
    fsync_dir,
    make_folder,
    remove,
    remove_temporary_files,
    sha256_of,
    write_atomically,
)
from grupo.storage.checkpoint import CorruptRun, explain_disk_errors
from grupo.storage.fault_injection import kill_point
from grupo.tasks.overlong import fit_prompts
from grupo.training.callbacks import Callback
from grupo.training.ranks import use_same_inference_servers
from grupo.util.errors import ConfigError
from grupo.util.rng import seed_torch
from grupo.util.run_files import SUMMARY_FILE


@dataclass(frozen=True)
class SamplingInputs:
    """The policy and the tasks of a stage that samples rollouts.

    Args:
        policy: The policy, whose weights are synced to its engine.
        tasks: The training tasks of the recipe, or only the first `max_tasks` of them.
    """

    policy: Policy
    tasks: Sequence[Task]


@contextmanager
def sampling_inputs(
    recipe: Recipe, max_tasks: int, callback: Callback, ranks: Ranks
) -> Generator[SamplingInputs]:
    """A context with the policy of a recipe and its first `max_tasks` training tasks.

    The weight sync of the policy is closed at the end of the context.

    Args:
        recipe: The recipe.
        max_tasks: Largest number of tasks; 0 stands for all tasks.
        callback: Receives a message about prompts that are too long.
        ranks: The processes that generate together.

    Raises:
        ConfigError: The tasks cannot be loaded, or the policy cannot answer them.
    """
    tasks: Sequence[Task]
    tasks, _ = load_tasks(recipe)
    seed_torch(recipe.seed, "build")  # new adapters are initialised at random, as in a run
    policy = recipe.policy.build()
    use_same_inference_servers(policy, ranks)  # all ranks generate with the same servers
    try:
        if policy.prompt_limit:
            # `recipe.overlong` says what is done with prompts that are too long
            (tasks,), message = fit_prompts(recipe.overlong, policy.prompt_limit, tasks)
            if message:
                callback.on_message(message)
        check_tasks(policy, tasks)
        # the engine gets the weights as they are; 0: no step has been trained
        policy.sync_weights(policy.weight_sync.snapshot(), version=0)
        num_tasks = min(max_tasks or len(tasks), len(tasks))
        yield SamplingInputs(policy, [tasks[i] for i in range(num_tasks)])
    finally:
        policy.weight_sync.close()


@contextmanager
def data_file_with_summary(file: Path, summary: dict[str, Any]) -> Generator[Path]:
    """A temporary path for a data file; the block writes the file to this path.

    When the block ends, the file is moved to its final path, and then `summary.json` is written. If
    the block raises, neither file appears.

    Args:
        file: Final path of the data file, or of a folder of files, in the folder of the stage.
        summary: The contents of `summary.json`, to which the block may add.
    """
    with explain_disk_errors(f"{file} is not written"):
        make_folder(file.parent)
        remove_temporary_files(file.parent)
        temporary = file.with_name(f"tmp.{file.name}")
        kill_point("data/begun")
        yield temporary
        _make_durable(temporary)
        digest = _digest(temporary)
        kill_point("data/written")
        if file.is_dir():  # left by a process that was killed before it wrote the summary
            remove(file)
        os.replace(temporary, file)
        fsync_dir(file.parent)
        kill_point("data/renamed")
        text = strict_json.to_json({**summary, "file": file.name, "sha256": digest})
        write_atomically(file.parent / SUMMARY_FILE, text, kill_point_prefix="data/summary")


def read_data_file(folder: Path) -> Path:
    """The data file, or the folder of files, of a finished stage.

    Raises:
        ConfigError: The stage writes no data.
        CorruptRun: The file is not the one that the stage wrote.
    """
    summary: Mapping[str, Any] = strict_json.from_json((folder / SUMMARY_FILE).read_text())
    if "sha256" not in summary:
        raise ConfigError(f"tasks: {str(folder)!r} is no finished stage that writes data.")
    file = folder / str(summary["file"])
    if not file.exists() or _digest(file) != summary["sha256"]:
        raise CorruptRun(
            f"{str(file)!r} is not what its stage wrote: its SHA-256 differs. Put back the"
            " original, or start a new pipeline."
        )
    return file


def _make_durable(path: Path) -> None:
    for file in _files_in(path):
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
    if path.is_dir():
        for folder in (path, *(inner for inner in path.rglob("*") if inner.is_dir())):
            fsync_dir(folder)


def _digest(path: Path) -> str:
    """SHA-256 of a file. For a folder, the SHA-256 of the names and digests of its files."""
    if not path.is_dir():
        return sha256_of(path)
    listing = "".join(f"{sha256_of(x)} {x.relative_to(path)}\n" for x in _files_in(path))
    return hashlib.sha256(listing.encode()).hexdigest()


def _files_in(path: Path) -> list[Path]:
    return sorted(x for x in path.rglob("*") if x.is_file()) if path.is_dir() else [path]
