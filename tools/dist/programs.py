"""Programs of fresh environments, and a line with the seconds of each stage."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# variables that would show this program's environment, or keep compiled files from being written
HIDDEN = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Print the name of a stage, and its seconds at its end."""
    print(f"{name} …", flush=True)
    start = time.monotonic()
    yield
    print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)


def variables(folder: Path) -> dict[str, str]:
    """The environment variables of a program that works in a folder."""
    shown = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    return shown | {"GRUPO_HOME": str(folder / "home"), "HF_HUB_OFFLINE": "1"}


def run(*command: str | Path, folder: Path = ROOT) -> str:
    """Run a command outside of this program's environment; its output. Exits if it fails."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=variables(folder),
        text=True,
        capture_output=True,
    )
    if done.returncode:
        line = " ".join(map(str, command))
        sys.exit(f"{done.stdout[-4000:]}{done.stderr[-4000:]}{line}: exit code {done.returncode}")
    return done.stdout


def pip(programs: Path, *arguments: str) -> str:
    """Run pip in an environment; its output."""
    return run(programs / "python", "-m", "pip", *arguments)


def new_environment(python: str, folder: Path, *packages: str) -> Path:
    """A fresh environment with packages; the folder of its programs."""
    run(python, "-m", "venv", folder)
    programs = folder / "bin"
    pip(programs, "install", *packages)
    return programs
