"""The interface of a sandbox backend, and the limits that every backend enforces."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

MIB = 1 << 20
MAX_OUTPUT_BYTES = MIB  # of the output, and of any file that the program writes
MAX_THREADS = 64
MAX_OPEN_FILES = 64
MAX_INODES = 4096  # files and folders in the temporary folder
PACKAGE_FOLDER = "/packages"  # of the sandbox; it holds the packages that a program may import


@dataclass(frozen=True)
class ProgramLimits:
    """Limits of one program.

    Args:
        time_limit: Wall-clock seconds.
        memory_mib: Address space, in MiB.
        disk_mib: Size of the temporary folder, in MiB.
        processes: Processes and threads together that the program may have, if it may start
            processes; None: one process with at most `MAX_THREADS` threads.
    """

    time_limit: float
    memory_mib: int
    disk_mib: int
    processes: int | None = None

    @property
    def allows_processes(self) -> bool:
        """Whether the program may start processes."""
        return self.processes is not None

    @property
    def max_tasks(self) -> int:
        """The largest number of processes and threads together."""
        return self.processes or MAX_THREADS

    @property
    def total_memory_mib(self) -> int:
        """Memory of the program and of its temporary folder, in MiB.

        The processes of a program share `memory_mib` where a cgroup can be had.
        """
        return self.memory_mib + self.disk_mib


@dataclass(frozen=True)
class Launch:
    """A command that reads a Python program from its standard input and runs it in a sandbox.

    Args:
        command: Absolute path of an executable, and its arguments.
        environment: All environment variables of the command.
        pass_fds: File descriptors that the command inherits.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    pass_fds: tuple[int, ...] = ()


class SandboxBackend(Protocol):
    """A kernel boundary around a program: a component that makes the command which starts it."""

    def check_machine(self) -> None:
        """Raises `ConfigError` if this machine lacks the backend."""
        ...

    def launch(
        self, limits: ProgramLimits, packages: Sequence[Path] = ()
    ) -> AbstractContextManager[Launch]:
        """The command for one program; leaving the context ends what is left of the sandbox.

        Args:
            limits: Limits of the program.
            packages: Files and folders of the host that the program sees, read-only, in
                `PACKAGE_FOLDER`, and may import.
        """
        ...

    def unavailable_limits(self) -> tuple[str, ...]:
        """Limits that this backend cannot enforce for this user on this machine, in words."""
        ...
