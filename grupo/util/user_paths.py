"""Paths that a user names."""

import os
import shlex
from pathlib import Path

from platformdirs import user_cache_path

from grupo.util.errors import ConfigError, suggest
from grupo.util.loader_errors import loader_errors
from grupo.util.run_files import MEDIA_FOLDER, PIPELINE_FILE, RECIPE_JSON

RECIPE_SUFFIXES = (".toml", ".yaml", ".yml")
_ALLOWED_RUN = "Allowed: a folder that `grupo train` made."


def parse_path(text: str) -> Path:
    """The path that a text names; `~` is the home directory. The path need not exist.

    Raises:
        ConfigError: No file system can hold the path: it contains NUL or a name of more than 255
            bytes, its symbolic links form a circle, or its user does not exist.
    """
    if "\0" in text:
        raise ConfigError(f"{text!r} is no path: it contains the character NUL.")
    with loader_errors(f"{text!r} is no path"):
        path = Path(text).expanduser()
        os.fsencode(path)
        path.resolve().exists()
    return path


def parse_folder(text: str) -> Path:
    """The path of a folder that exists or can be made.

    Raises:
        ConfigError: It is no path, or something else than a folder exists there.
    """
    path = parse_path(text)
    with loader_errors(f"{text!r} is no folder"):
        if path.exists() and not path.is_dir():
            raise ConfigError(f"{text!r} exists and is no folder. Name another one.")
    return path


def shell_path(path: Path) -> str:
    """The path as an argument of a command line, quoted where a shell needs that.

    >>> print(shell_path(Path("runs/first")), shell_path(Path("my runs/first")))
    runs/first 'my runs/first'
    """
    return shlex.quote(str(path))


def no_run_message(folder: Path) -> str:
    """The error message for a folder that holds no run: the nearest run beside it, or what it is.

    >>> no_run_message(Path("frist"))
    "run: 'frist' is not a folder. Allowed: a folder that `grupo train` made."
    """
    problem = f"run: {str(folder)!r} holds no run: it has no recipe.json."
    if not folder.is_dir():
        problem = f"run: {str(folder)!r} is not a folder."
    if (folder / "config.json").is_file():
        return f"{problem} It is a model, for --model {shell_path(folder)}."
    if (folder / PIPELINE_FILE).is_file():
        stages = sorted(str(path.parent) for path in folder.rglob(RECIPE_JSON))
        return f"{problem} It is a pipeline, with the runs {', '.join(stages) or '(none yet)'}."
    runs = [str(path.parent) for path in folder.parent.glob(f"*/{RECIPE_JSON}")]
    return f"{problem} {suggest(str(folder), runs)}" if runs else f"{problem} {_ALLOWED_RUN}"


def check_regular_files(folder: Path) -> None:
    """Raise `ConfigError` for what is no file of a run in its folder.

    Pipes, sockets and devices have no end. A link to a file elsewhere would put that file into a
    report. Links to folders are allowed, since checkpoints may be on another disk, and so are the
    links of loggers in their own folders, which no report shows.
    """
    inside = os.path.realpath(folder)
    shown = {str(folder), str(folder / MEDIA_FOLDER)}
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            if path.exists() and not (path.is_file() or path.is_dir()):
                raise ConfigError(
                    f"run: {str(path)!r} is a pipe, a socket or a device. Allowed in the folder of"
                    " a run: files and folders."
                )
            is_shown_link = root in shown and path.is_symlink()
            if is_shown_link and not Path(os.path.realpath(path)).is_relative_to(inside):
                raise ConfigError(
                    f"run: {str(path)!r} is a link to a file elsewhere. Allowed in the folder of a"
                    " run: files, folders, and links to them. Put a copy in its place."
                )


def is_recipe_file(address: str) -> bool:
    """True for the path of a TOML or YAML file.

    >>> is_recipe_file("recipes/first.toml"), is_recipe_file("recipe.py:RECIPE")
    (True, False)
    """
    return address.lower().endswith(RECIPE_SUFFIXES)


def relative_path(path: Path) -> Path:
    """The path relative to the working directory if it is inside; otherwise unchanged."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def models_dir() -> Path:
    """The folder of the toy models: in GRUPO_HOME if it is set, else in the cache of the user."""
    home = os.environ.get("GRUPO_HOME", "")
    return (Path(home) if home else user_cache_path("grupo", appauthor=False)) / "models"
