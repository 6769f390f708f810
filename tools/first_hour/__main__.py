"""The first hour of a new user, timed: `python tools/first_hour`.

A fresh clone, a fresh environment, a model that is built on the spot, then everything that the
README shows. Each stage fails if its result is missing. Ends with exit code 1 if a stage fails or
the limit is exceeded.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from clock import StageError, User, fail, print_header, print_total, run_stages
from stages import STAGES

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 12 * 60  # seconds


def install(user: User) -> None:
    """Clone the repository and make its environment, as the README says."""
    clone = user.python.parents[2]
    user.run("git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), clone)
    user.run("make", ".venv/installed", f"PYTHON={sys.executable}", folder=clone)
    user.grupo("--version")
    user.expect("grupo ")


def main() -> None:
    """Run all stages and print the table."""
    parser = argparse.ArgumentParser(prog="python tools/first_hour", description=__doc__)
    parser.add_argument(
        "--python", type=Path, help="Python of an environment with grupo: nothing is installed."
    )
    parser.add_argument("--folder", type=Path, help="A new folder to work in, which is kept.")
    arguments = parser.parse_args()
    root = arguments.folder or Path(tempfile.mkdtemp(prefix="first_hour_"))
    (root / "work").mkdir(parents=True)
    stages = STAGES
    python = arguments.python and arguments.python.absolute()
    if python is None:
        python = root.absolute() / "grupo" / ".venv" / "bin" / "python"
        stages = (("install: clone, environment", install), *STAGES)
        for name in ("PYTHONPATH", "VIRTUAL_ENV"):  # of the environment that this script runs in
            os.environ.pop(name, None)
    print_header()
    try:
        within_limit = print_total(run_stages(User(root / "work", python), stages), LIMIT)
    except StageError as error:
        fail(str(error))
        return
    finally:
        if not arguments.folder:
            shutil.rmtree(root)
    if not within_limit:
        fail("The limit is exceeded.")


if __name__ == "__main__":
    main()
