"""The place in a user's code at which an exception was raised."""

import sysconfig
import traceback
from pathlib import Path

PACKAGE = Path(__file__).parent.parent
LIBRARIES = tuple(
    Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def error_location(error: BaseException) -> str:
    """File and line of the last call outside of libraries and of grupo; "" if there is none.

    A file in the current folder has its name relative to it.
    """
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_own(frame.filename)]
    return f"{_shown_path(own[-1].filename)}:{own[-1].lineno}" if own else ""


def _is_own(filename: str) -> bool:
    path = Path(filename)
    return path.is_file() and not any(path.is_relative_to(p) for p in (PACKAGE, *LIBRARIES))


def _shown_path(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
