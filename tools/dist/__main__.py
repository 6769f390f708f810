"""Builds sdist and wheel, checks them, and tries both outside of the repository: `make dist`.

    python tools/dist                        # newest versions of what grupo requires
    python tools/dist --lowest               # the lowest that pyproject.toml allows
    python tools/dist --python python3.13    # another Python
    python tools/dist --require torch==2.13  # a version that is given

The archives are in dist/. The wheel is installed with all that it requires in a fresh environment,
where the commands of a new user run. The sdist then takes its place: its requirements are resolved
again, its files must be those of the wheel, and some of the commands run again.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from archives import build, installed_files, lowest_versions, wheel_files, wrong_contents
from commands import AGAIN, COMMANDS, try_commands, try_server, write_files
from programs import new_environment, pip, run, stage


def main() -> None:
    """Build, check and try the archives."""
    parser = argparse.ArgumentParser(prog="python tools/dist", description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="Python of the environments.")
    parser.add_argument("--lowest", action="store_true", help="Install the lowest versions.")
    parser.add_argument("--require", nargs="*", default=(), help="Versions: torch==2.13 …")
    arguments = parser.parse_args()
    versions = (*(lowest_versions() if arguments.lowest else ()), *arguments.require)
    with tempfile.TemporaryDirectory(prefix="grupo_dist_") as temporary, stage("all"):
        try_archives(Path(temporary), arguments.python, versions)


def try_archives(folder: Path, python: str, versions: tuple[str, ...]) -> None:
    """Build the archives and try each; exits if a check fails.

    Args:
        folder: An empty folder for environments and runs.
        python: Python of the environments.
        versions: Requirements that are installed beside grupo's own.
    """
    with stage("build"):
        sdist, wheel = build(python, folder)
        if wrong := wrong_contents(wheel):
            sys.exit("\n".join(wrong))
    with stage("install the wheel and all that it requires"):
        programs = new_environment(python, folder / "environment", f"{wheel}[proxy]", *versions)
        pip(programs, "check")
    work = folder / "work"
    with stage("try the wheel"):
        write_files(programs, work)
        try_commands(programs, work, COMMANDS)
        try_server(programs, work)
    with stage("install the sdist in its place"):
        pip(programs, "uninstall", "--yes", "grupo")
        pip(programs, "install", f"{sdist}[proxy]", *versions)
        if wrong := set(wheel_files(wheel).items()) ^ set(installed_files(programs).items()):
            sys.exit("\n".join(f"differs: {name}" for name in sorted({name for name, _ in wrong})))
    with stage("try the sdist"):
        try_commands(programs, work, AGAIN)
    print(f"{wheel.name} and {sdist.name} are installed and run with")
    print(run(programs / "python", "--version"), pip(programs, "freeze"), sep="", flush=True)


if __name__ == "__main__":
    main()
