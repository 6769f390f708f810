"""A backend without a boundary, for the trusted programs of tests where no sandbox works."""

from contextlib import contextmanager
from dataclasses import replace

from grupo.core.component import component
from grupo.envs.tools import Sandbox
from grupo.envs.tools.backends.program import host_python, python_command
from grupo.envs.tools.backends.protocol import Launch
from grupo.util.errors import ConfigError


@component
class PlainProcess:
    """Runs programs of the tests, which are trusted, where no sandbox works."""

    def check_machine(self):
        pass

    @contextmanager
    def launch(self, limits, packages=()):
        yield Launch(python_command(host_python(), limits, packages))

    def unavailable_limits(self):
        return ()


def sandbox_or_plain_process(sandbox: Sandbox) -> Sandbox:
    """The sandbox, or the same limits in a plain process if no sandbox works."""
    try:
        sandbox.check()
    except ConfigError:
        return replace(sandbox, backend=PlainProcess())
    return sandbox
