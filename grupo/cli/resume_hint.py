"""The hint that a run which ended with an error or Ctrl-C can be resumed."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from grupo.distributed.start import is_rank_0
from grupo.util.console import print_error
from grupo.util.errors import ConfigError
from grupo.util.run_files import CHECKPOINTS_FOLDER, RECIPE_JSON
from grupo.util.user_paths import shell_path


@contextmanager
def resume_hint(folder: Path) -> Generator[None]:
    """Print how to resume a run that ends with an error or Ctrl-C."""
    try:
        yield
    except ConfigError:
        raise  # its message says what to do
    except BaseException:
        if is_rank_0() and _is_resumable(folder):
            print_error(f"`grupo resume {shell_path(folder)}` continues {_resume_point(folder)}.")
        raise


def _resume_point(folder: Path) -> str:
    has_checkpoint = any((folder / CHECKPOINTS_FOLDER).glob("step-*"))
    return "from the last checkpoint" if has_checkpoint else "with the first step"


def _is_resumable(folder: Path) -> bool:
    """Whether the folder holds a run whose recipe has no objects that were in memory."""
    from grupo.core.serialization import objects_in_memory
    from grupo.training.resume.run_folder import RunFolder

    has_run = (folder / RECIPE_JSON).is_file()
    return has_run and not objects_in_memory(RunFolder.open(folder).recipe)
