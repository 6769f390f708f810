"""Backends of the sandbox: bubblewrap, gVisor, and containers of Docker or Podman."""

from grupo.envs.tools.backends.bubblewrap import Bubblewrap
from grupo.envs.tools.backends.container import Container
from grupo.envs.tools.backends.first_available import FirstAvailable
from grupo.envs.tools.backends.gvisor import Gvisor
from grupo.envs.tools.backends.protocol import Launch, ProgramLimits, SandboxBackend

__all__ = [
    "Bubblewrap",
    "Container",
    "FirstAvailable",
    "Gvisor",
    "Launch",
    "ProgramLimits",
    "SandboxBackend",
]
