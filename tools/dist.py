"""Builds sdist and wheel, checks them, and tries each in a fresh environment: `make dist`.

    python tools/dist.py                              # newest versions of what grupo requires
    python tools/dist.py --lowest                     # the lowest that pyproject.toml allows
    python tools/dist.py --python python3.13 --only wheel

The archives are in dist/. Commands run in a folder outside of the repository, without its path.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
SHORT = ("--evaluation.attempts", "1", "--eval-tasks", "8")
# commands of a new user: what package data, C sources, recipes and pages are needed for
COMMANDS = (
    ("--version",),
    ("doctor", "--environment"),
    ("recipes", "sums"),
    ("papers", "--kind", "policy"),
    ("methods", "dr_grpo"),
    ("migrate", "grpo.py"),
    ("train", "--steps", "2", *SHORT, "--run", "runs/quickstart"),
    ("report", "runs/quickstart", "--out", "quickstart.html"),
    ("doctor", "runs/quickstart"),
    ("check", "runs/quickstart"),
    ("export", "runs/quickstart", "model"),
    ("train", "recipes/sums/dapo.py:RECIPE", "--steps", "1", *SHORT, "--run", "runs/dapo"),
    ("report", "runs/dapo", "--out", "dapo.html"),
)
TRL_SCRIPT = "GRPOTrainer(model='owner/model', args=GRPOConfig(num_generations=4, max_steps=9))\n"


def run(*command: str | Path, folder: Path = ROOT) -> str:
    """Run a command outside of this program's environment; its output. Exits if it fails."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"GRUPO_HOME": str(folder / "home"), "HF_HUB_OFFLINE": "1"}
    print("$", *command, flush=True)
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=environment, text=True, capture_output=True
    )
    if done.returncode:
        sys.exit(f"{done.stdout[-4000:]}{done.stderr[-4000:]}exit code {done.returncode}")
    return done.stdout


def new_environment(python: str, folder: Path, *packages: str | Path) -> Path:
    """A fresh environment with packages; the folder of its programs."""
    run(python, "-m", "venv", folder)
    programs = folder / "bin"
    run(programs / "python", "-m", "pip", "install", "--quiet", *packages)
    return programs


def build(python: str, folder: Path) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from it; both pass `twine check`."""
    programs = new_environment(python, folder / "build", "build", "twine")
    for old in DIST.glob("grupo-*"):
        old.unlink()
    run(programs / "python", "-m", "build", "--outdir", DIST)
    (sdist,), (wheel,) = DIST.glob("grupo-*.tar.gz"), DIST.glob("grupo-*.whl")
    run(programs / "twine", "check", "--strict", sdist, wheel)
    return sdist, wheel


def wrong_contents(wheel: Path) -> list[str]:
    """The files that the wheel lacks, and those that it should not have."""
    tracked = run("git", "ls-files", "grupo", "recipes").splitlines()
    expected = {re.sub("^recipes/", "grupo/recipes/", name) for name in tracked}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    return [
        *(f"missing: {x}" for x in expected - names),
        *(f"extra: {x}" for x in names - expected),
    ]


def lowest_versions() -> list[str]:
    """The lowest allowed version of every package that grupo requires."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [requirement.replace(">=", "==") for requirement in project["dependencies"]]


def try_archive(programs: Path, folder: Path) -> None:
    """Run the commands of a new user in an empty folder."""
    folder.mkdir()
    (folder / "grpo.py").write_text(TRL_SCRIPT)
    for arguments in COMMANDS:
        output = run(programs / "grupo", *arguments, folder=folder)
        if arguments == ("doctor", "--environment"):
            print(output)
            wrong = [
                x for x in output.splitlines() if x.startswith("problem") or "not compiled" in x
            ]
            if wrong:
                sys.exit("\n".join(wrong))
    for page in ("quickstart.html", "dapo.html", "model/model.safetensors"):
        if not (folder / page).stat().st_size:
            sys.exit(f"{page} is empty")


def main() -> None:
    """Build, check and try the archives."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="Python of the environments.")
    parser.add_argument("--lowest", action="store_true", help="Install the lowest versions.")
    parser.add_argument("--only", choices=("sdist", "wheel"), help="Try one archive.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="grupo_dist_") as temporary:
        folder = Path(temporary)
        archives = dict(zip(("sdist", "wheel"), build(arguments.python, folder), strict=True))
        if wrong := wrong_contents(archives["wheel"]):
            sys.exit("\n".join(wrong))
        for kind, archive in archives.items():
            if arguments.only in (None, kind):
                versions = lowest_versions() if arguments.lowest else []
                environment = folder / f"environment_{kind}"
                programs = new_environment(arguments.python, environment, archive, *versions)
                try_archive(programs, folder / kind)
                print(f"{archive.name} is installed and runs.", flush=True)


if __name__ == "__main__":
    main()
