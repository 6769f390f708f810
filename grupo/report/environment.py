"""`grupo doctor --environment`: versions, devices, the compiler and extras of this installation."""

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from grupo.util.requirements import EXTRAS, InstalledPackage, required_packages


@dataclass(frozen=True)
class InstalledExtra:
    """An extra of the package.

    Args:
        name: Its name: `pip install "grupo[NAME]"`.
        purpose: What it brings.
        missing: Its requirements that are not installed, or in another version.
    """

    name: str
    purpose: str
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Environment:
    """An installation.

    Args:
        version: Version of grupo.
        folder: Folder of the package.
        python: Version of Python, the system and its architecture.
        packages: The packages that every installation requires.
        devices: The processor, and each GPU that torch can use.
        kernels: The C compiler, and whether the native kernels were compiled.
        extras: All extras for users.
    """

    version: str
    folder: str
    python: str
    packages: tuple[InstalledPackage, ...]
    devices: tuple[str, ...]
    kernels: str
    extras: tuple[InstalledExtra, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """Required packages that are missing, or in a version that is not allowed."""
        wrong = (package for package in self.packages if not package.is_allowed)
        return tuple(f"{p.requirement} is required: {p.version or 'missing'}" for p in wrong)

    def to_data(self) -> dict[str, Any]:
        """The environment as JSON can hold it."""
        return asdict(self) | {"problems": list(self.problems)}


def examine_environment() -> Environment:
    """The environment of this process. The native kernels are compiled if they were not yet."""
    return Environment(
        version=metadata.version("grupo"),
        folder=str(Path(__file__).parents[1]),
        python=f"{platform.python_version()}, {platform.platform()}",
        packages=tuple(required_packages()),
        devices=tuple(_devices()),
        kernels=_kernels(),
        extras=tuple(_extra(name, purpose) for name, purpose in EXTRAS.items()),
    )


def environment_lines(environment: Environment) -> Iterator[str]:
    """The environment as lines of text: each begins with its subject."""
    yield f"grupo      {environment.version}, {environment.folder}"
    yield f"python     {environment.python}"
    for package in environment.packages:
        yield f"package    {package.requirement}: {package.version or 'missing'}"
    for device in environment.devices:
        yield f"device     {device}"
    yield f"kernels    {environment.kernels}"
    for extra in environment.extras:
        install = f'pip install "grupo[{extra.name}]": {", ".join(extra.missing)}'
        state = install if extra.missing else "installed"
        yield f"extra      {extra.name}: {extra.purpose} ({state})"
    for problem in environment.problems:
        yield f"problem    {problem}"


def _extra(name: str, purpose: str) -> InstalledExtra:
    missing = (p.requirement for p in required_packages(name) if not p.is_allowed)
    return InstalledExtra(name, purpose, tuple(missing))


def _devices() -> list[str]:
    """The processor and the GPUs; the reason if torch does not import."""
    try:
        import torch
    except (ImportError, OSError) as error:
        return [f"{_processor()}; torch does not import: {error}"]
    from grupo.models.devices import has_bfloat16

    instructions = "" if has_bfloat16(torch.device("cpu")) else "no "
    processor = f"{_processor()}, {instructions}instructions for bfloat16"
    if not torch.cuda.is_available():
        build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPUs only"
        return [processor, f"no GPU was found; torch was built for {build}"]
    gpus = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    return [
        processor,
        *(
            f"cuda:{i}: {gpu.name}, {gpu.total_memory / 2**30:.0f} GiB, compute capability"
            f" {gpu.major}.{gpu.minor}, CUDA {torch.version.cuda}"
            for i, gpu in enumerate(gpus)
        ),
    ]


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"cpu: {next(names, platform.machine())}, {cores} cores, {memory:.0f} GiB"


def _kernels() -> str:
    """Whether the native kernels are compiled, and with what."""
    try:
        import torch

        from grupo.kernels.native import compiler_command, library
    except (ImportError, OSError):
        return "not tried: torch does not import"
    is_compiled = library(torch.float32) is not None
    state = "compiled" if is_compiled else "not compiled, so that a CPU is about half as fast;"
    return f"{state} with {_first_line(compiler_command())}"


def _first_line(command: str) -> str:
    """A compiler's command and the first line of its version."""
    program = command.split()[0]
    if not shutil.which(program):
        return f"{program!r}, which is not installed (CC, otherwise cc)"
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return f"{program!r}: {done.stdout.partition(chr(10))[0]}"
