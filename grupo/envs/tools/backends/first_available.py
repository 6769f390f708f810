"""The choice of a backend where none is named."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path

from grupo.core.component import component
from grupo.envs.tools.backends.bubblewrap import Bubblewrap
from grupo.envs.tools.backends.container import Container
from grupo.envs.tools.backends.gvisor import Gvisor
from grupo.envs.tools.backends.protocol import Launch, ProgramLimits, SandboxBackend
from grupo.util.errors import ConfigError


@component
class FirstAvailable:
    """The first backend that works on this machine; programs never run without one.

    Args:
        backends: Backends in the order of preference.
    """

    backends: tuple[SandboxBackend, ...] = (Bubblewrap(), Gvisor(), Container())

    def check_machine(self) -> None:
        """Raises `ConfigError` with the reason of each backend if none works."""
        self.choice()

    def launch(
        self, limits: ProgramLimits, packages: Sequence[Path] = ()
    ) -> AbstractContextManager[Launch]:
        """The command of the first backend that works."""
        return self.choice().launch(limits, packages)

    def unavailable_limits(self) -> tuple[str, ...]:
        """Limits that the first backend that works cannot enforce on this machine, in words."""
        return self.choice().unavailable_limits()

    def choice(self) -> SandboxBackend:
        """The first backend that works; raises `ConfigError` if none does."""
        return _first_available(self)


@cache
def _first_available(choice: FirstAvailable) -> SandboxBackend:
    reasons: list[str] = []
    for backend in choice.backends:
        try:
            backend.check_machine()
            return backend
        except ConfigError as error:
            reasons.append(str(error).removeprefix("sandbox: "))
    raise ConfigError("sandbox: no backend works on this machine. " + " ".join(reasons))
