"""Any program of the system in a sandbox: a compiler, a solver, a prover, with its files."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from grupo.core.component import component
from grupo.core.ranges import FiniteSeconds, NonEmptyString, PositiveInt
from grupo.envs.tools.backends import (
    Bubblewrap,
    Container,
    FirstAvailable,
    ProgramLimits,
    SandboxBackend,
)
from grupo.envs.tools.backends.process import run_program
from grupo.util.errors import ConfigError
from grupo.util.json_text import parse_json

CACHED_RUNS = 64  # the last results, each of at most a megabyte
# The sandbox's own program: writes the input files, runs the command, and prints one line of JSON.
# The command has neither the descriptor of that line nor /proc; a command that kills this program
# leaves no line. Output files are regular files of one name, so that a link or a pipe is none.
RUN_COMMAND = """\
import base64, json, os, shutil, stat, subprocess, sys, tempfile
request = json.loads({request!r})
for name, data in request["files"].items():
    with open(name, "wb") as file:
        file.write(base64.b64decode(data))
    os.chmod(name, 0o700)
given, printed, errors = (tempfile.TemporaryFile() for _ in range(3))
given.write(base64.b64decode(request["input"]))
given.seek(0)
environment = {{"PATH": "/usr/bin:/bin", "HOME": "/tmp", "TMPDIR": "/tmp", "LC_ALL": "C.UTF-8"}}
is_missing = shutil.which(request["command"][0], path=environment["PATH"]) is None
code = None if is_missing else subprocess.run(
    request["command"], stdin=given, stdout=printed, stderr=errors, env=environment, cwd="/tmp"
).returncode
outputs = {{}}
for name in request["outputs"]:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        continue
    with open(descriptor, "rb") as file:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            outputs[name] = base64.b64encode(file.read()).decode()
texts = []
for file in (printed, errors):
    file.seek(0)
    texts.append(base64.b64encode(file.read()).decode())
print(json.dumps(
    {{"is_missing": is_missing, "code": code, "texts": texts, "outputs": outputs}}
))
"""


@dataclass(frozen=True)
class ProgramRun:
    """Results that a program has left behind.

    Args:
        exit_code: Its exit code; minus the number of the signal that ended it; None if it was
            stopped at a limit of the sandbox.
        printed: Its standard output.
        errors: Its standard error.
        outputs: The declared output files that it wrote, by name.
        message: The limit at which it was stopped; "" if it ended by itself.
    """

    exit_code: int | None
    printed: str = ""
    errors: str = ""
    outputs: Mapping[str, bytes] = field(default_factory=dict)
    message: str = ""


@component
class ProgramSandbox:
    """Runs a program of the system behind the same kernel boundary as `Sandbox`.

    The program sees /usr read-only and a temporary folder with its input files, and no network. It
    may start processes, as compilers do; they are counted and end with it. Its result is what it
    printed, its exit code and its declared output files. Equal runs are made once, for the last
    64. A run that was stopped at a limit is made again.

    Each process has the address space `memory_mib`, and where a cgroup can be had all share this
    memory. AddressSanitizer reserves terabytes of addresses, and therefore does not start.

    Args:
        command: The program and its arguments, for example `("gcc", "-o", "a.out", "main.c")`.
        outputs: Names of the files that are returned, in the temporary folder itself.
        time_limit: Wall-clock seconds after which all processes are killed.
        memory_mib: Address space of a process, in MiB.
        disk_mib: Size of the temporary folder, in MiB; a single file has at most 1 MiB.
        processes: Processes and threads together, with one for the sandbox itself.
        backend: `Bubblewrap()` or `Container(image)`, by default the first that works; gVisor does
            not count processes.
        package: Where the program comes from, for the message if it is missing, for example
            "the package glpk-utils of Debian".
    """

    command: tuple[NonEmptyString, ...]
    outputs: tuple[NonEmptyString, ...] = ()
    time_limit: FiniteSeconds = 10.0
    memory_mib: PositiveInt = 512
    disk_mib: PositiveInt = 16
    processes: PositiveInt = 16
    backend: SandboxBackend = FirstAvailable((Bubblewrap(), Container()))
    package: str = ""

    def __post_init__(self) -> None:
        if not self.command:
            raise ConfigError("ProgramSandbox.command: (). Allowed: a program and its arguments.")
        for name in self.outputs:
            check_file_name("ProgramSandbox.outputs", name)

    def run(self, files: Mapping[str, str | bytes], text: str = "") -> ProgramRun:
        """The result of the program.

        Args:
            files: The input files by name; all can be executed.
            text: Its standard input.

        Raises:
            ConfigError: The program or every backend is missing, or a name has a folder.
        """
        for name in files:
            check_file_name("ProgramSandbox.files", name)
        encoded = {
            name: data.encode() if isinstance(data, str) else data for name, data in files.items()
        }
        try:
            return _run(self, tuple(sorted(encoded.items())), text)
        except _StoppedError as error:
            return ProgramRun(None, message=str(error))

    def check(self) -> None:
        """Raises `ConfigError` where no backend works or the program is missing."""
        self.backend.check_machine()
        self.run({})

    @property
    def _limits(self) -> ProgramLimits:
        return ProgramLimits(self.time_limit, self.memory_mib, self.disk_mib, self.processes)


class _StoppedError(Exception):
    """A program was stopped at a limit; as an error, because the cache keeps results alone."""


@lru_cache(maxsize=CACHED_RUNS)
def _run(sandbox: ProgramSandbox, files: tuple[tuple[str, bytes], ...], text: str) -> ProgramRun:
    request = {
        "command": sandbox.command,
        "outputs": sandbox.outputs,
        "files": {name: base64.b64encode(data).decode() for name, data in files},
        "input": base64.b64encode(text.encode()).decode(),
    }
    code = RUN_COMMAND.format(request=json.dumps(request))
    output = run_program(sandbox.backend, code, sandbox._limits)
    line = output.rpartition("\n")[2]
    try:
        result = parse_json(line)
        is_missing = result["is_missing"]
        printed, errors = (base64.b64decode(x).decode(errors="replace") for x in result["texts"])
        outputs = {name: base64.b64decode(data) for name, data in result["outputs"].items()}
    except (ValueError, TypeError, KeyError):
        raise _StoppedError(line[:200] or "(it left no result)") from None
    if is_missing:
        where = f" It belongs to {sandbox.package}." if sandbox.package else ""
        raise ConfigError(
            f"ProgramSandbox.command: {sandbox.command[0]!r} is not installed.{where}"
        )
    return ProgramRun(result["code"], printed, errors, outputs)


def check_file_name(place: str, name: str) -> None:
    """Raise `ConfigError`, beginning with `place`, for a name that no file in a folder has."""
    if "/" in name or name in (".", "..") or "\0" in name or not name:
        raise ConfigError(f"{place}: {name[:80]!r}. Allowed: the name of a file, without a folder.")
