"""Programs in a sandbox: no network, no secrets, one process, hard limits."""

from grupo.core.component import component
from grupo.core.ranges import FiniteSeconds, NonEmptyString, PositiveInt
from grupo.envs.tools.backends import FirstAvailable, ProgramLimits, SandboxBackend
from grupo.envs.tools.backends.packages import package_paths
from grupo.envs.tools.backends.process import run_program, trial_failure
from grupo.util.errors import ConfigError


@component
class Sandbox:
    """Runs Python programs behind a kernel boundary.

    Every backend limits a program's time, its address space, its output, its open files and its
    temporary folder. `unavailable_limits()` lists what the machine's backend cannot limit.

    Args:
        time_limit: Wall-clock seconds after which a program is killed.
        memory_mib: Address space of a program, in MiB.
        disk_mib: Size of its temporary folder, in MiB; the folder is deleted afterwards.
        backend: `Bubblewrap()`, `Gvisor()` or `Container(image)`; by default the first that works.
        packages: Installed distributions that a program may import besides the standard library,
            with those that they need: `("numpy", "scipy")`. A container has none.
    """

    time_limit: FiniteSeconds = 5.0
    memory_mib: PositiveInt = 512
    disk_mib: PositiveInt = 16
    backend: SandboxBackend = FirstAvailable()
    packages: tuple[NonEmptyString, ...] = ()

    def check(self) -> None:
        """Raises `ConfigError` where no backend works, or no program runs with these fields."""
        self.backend.check_machine()
        failure = trial_failure(self.backend, self._limits, package_paths(self.packages))
        if failure:
            raise ConfigError(
                f"sandbox: a program that prints one word fails: {failure}. Allowed: a time_limit"
                f" (here {self.time_limit}), a memory_mib ({self.memory_mib}) and a disk_mib"
                f" ({self.disk_mib}) with which Python starts, and packages that can be mounted."
            )

    def run(self, code: str) -> str:
        """The program's output, and a last line with the reason if it failed or was stopped.

        Raises:
            UnicodeEncodeError: The program has a lone surrogate; nothing is started.
            ConfigError: No backend works on this machine, or a package cannot be had.
        """
        return run_program(self.backend, code, self._limits, package_paths(self.packages))

    def unavailable_limits(self) -> tuple[str, ...]:
        """Limits that cannot be enforced for this user on this machine, in words."""
        return self.backend.unavailable_limits()

    @property
    def _limits(self) -> ProgramLimits:
        return ProgramLimits(self.time_limit, self.memory_mib, self.disk_mib)
