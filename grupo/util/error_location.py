"""The place in a user's code at which an exception was raised."""

import sysconfig
import traceback
from pathlib import Path

GRUPO = Path(__file__).parents[1]
STANDARD_LIBRARY = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))
# of this environment, of one that it extends, of the user and of the system
PACKAGE_FOLDERS = {"site-packages", "dist-packages"}


def error_location(error: BaseException) -> str:
    """File and line of the last call outside of libraries and of grupo; "" if there is none.

    A file in the current folder has its name relative to it.
    """
    own = [frame for frame in user_frames(error) if Path(frame.filename).is_file()]
    return f"{_shown_path(own[-1].filename)}:{own[-1].lineno}" if own else ""


def user_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Calls in code that is neither Python's, nor an installed package's, nor grupo's."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame for frame in frames if not _is_library(frame.filename)]


def _is_library(filename: str) -> bool:
    path = Path(filename)
    is_installed = not PACKAGE_FOLDERS.isdisjoint(path.parts)
    is_below = any(path.is_relative_to(folder) for folder in (GRUPO, *STANDARD_LIBRARY))
    return filename.startswith("<") or is_installed or is_below


def _shown_path(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
