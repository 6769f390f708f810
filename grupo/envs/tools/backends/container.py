"""Container engines: Docker or Podman, with an image that holds Python."""

import json
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from grupo.core.component import component
from grupo.envs.tools.backends.process import check_works
from grupo.envs.tools.backends.program import LINUX_LIMITS, python_command
from grupo.envs.tools.backends.protocol import (
    MAX_OPEN_FILES,
    MIB,
    Launch,
    ProgramLimits,
)
from grupo.envs.tools.seccomp import oci_profile
from grupo.util.errors import ConfigError
from grupo.util.parent_death import name_prefix, run_after_end

ENGINES = ("podman", "docker")
# variables with which a client finds its engine; the container has none of them
CLIENT_VARIABLES = (
    *("PATH", "HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"),
    *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINER_HOST"),
)
# clients copy the user's proxies into a container, with their passwords
PROXY_VARIABLES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")
# a script of sh: removes the containers whose names start with the first argument, by the command
# of the engine that follows; one may be about to start, so that it looks for them several times
REMOVE_ALL = """\
prefix=$1
shift
for attempt in 1 2 3 4 5; do
    containers=$("$@" ps --all --quiet --filter "name=^$prefix")
    [ -z "$containers" ] || "$@" rm --force $containers
    sleep 1
done
"""
OPTIONS = (
    *("--rm", "--interactive", "--pull=never", "--network=none", "--read-only", "--ipc=none"),
    *("--cap-drop=ALL", "--security-opt=no-new-privileges", "--user=65534:65534"),
    *("--hostname=sandbox", "--workdir=/tmp", "--log-driver=none", "--stop-timeout=0"),
)


@component
class Container:
    """Runs programs in a container of Podman or Docker, with the same filter of system calls.

    A program has the standard library of the image, and no packages: those of the host are built
    for another Python.

    Args:
        image: Image with Python 3.11 or later; it must be present, and is never pulled.
        python: Path of the Python executable in the image.
        engine: "podman", "docker" or the path of one; "" is the first that is installed.
        engine_options: Further options before `run`, such as `("--runtime=runsc",)`.
    """

    image: str = "python:3.12-slim"
    python: str = "python3"
    engine: str = ""
    engine_options: tuple[str, ...] = ()

    def check_machine(self) -> None:
        """Raises `ConfigError` where no engine is installed, or the image does not run."""
        _check_container(self)

    @contextmanager
    def launch(self, limits: ProgramLimits, packages: Sequence[Path] = ()) -> Generator[Launch]:
        """The command of the engine; the container is removed at the end.

        Raises:
            ConfigError: No engine is installed, or there are packages.
        """
        if packages:
            raise ConfigError(
                "sandbox: packages: a container has no packages of the host. Allowed: () with"
                " Container(); packages with Bubblewrap() or Gvisor()."
            )
        engine, environment = self._engine_path(), _client_environment()
        name = f"{name_prefix()}{uuid.uuid4().hex}"
        call_engine = (engine, *self.engine_options)
        remove_all = ("/bin/sh", "-c", REMOVE_ALL, "sh", name_prefix(), *call_engine)
        run_after_end(*remove_all, environment=environment)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as profile:
            json.dump(oci_profile(allows_processes=limits.allows_processes), profile)
            profile.flush()
            options = (*OPTIONS, f"--name={name}", f"--security-opt=seccomp={profile.name}")
            try:
                yield Launch(
                    (
                        *(*call_engine, "run", *options, *_limit_options(limits)),
                        *(f"--env={name}=" for name in _proxy_variables()),
                        *(f"--entrypoint={self.python}", self.image),
                        *python_command(self.python, limits, packages, **LINUX_LIMITS)[1:],
                    ),
                    environment,
                )
            finally:
                remove = (*call_engine, "rm", "--force", name)
                subprocess.run(remove, env=environment, capture_output=True, check=False)

    def unavailable_limits(self) -> tuple[str, ...]:
        """Limits that cannot be enforced, in words: none, if the engine has cgroups."""
        return ()

    def _engine_path(self) -> str:
        names = (self.engine,) if self.engine else ENGINES
        path = next(filter(None, map(shutil.which, names)), None)
        if path is None:
            raise ConfigError(
                f"sandbox: {' or '.join(names)} is not installed. Install it, or remove the tool."
            )
        return path


def _limit_options(limits: ProgramLimits) -> tuple[str, ...]:
    memory_mib = limits.total_memory_mib
    executable = ",exec" if limits.allows_processes else ""  # engines add noexec
    return (
        *(f"--memory={memory_mib}m", f"--memory-swap={memory_mib}m"),
        f"--pids-limit={limits.max_tasks}",
        f"--ulimit=nofile={MAX_OPEN_FILES}:{MAX_OPEN_FILES}",
        "--ulimit=nproc=1024:1024",  # of all containers; Podman's default may exceed the machine's
        f"--tmpfs=/tmp:rw,nosuid,nodev,mode=1777{executable},size={limits.disk_mib * MIB}",
    )


def _client_environment() -> Mapping[str, str]:
    return {name: os.environ[name] for name in CLIENT_VARIABLES if name in os.environ}


def _proxy_variables() -> tuple[str, ...]:
    return (*PROXY_VARIABLES, *map(str.upper, PROXY_VARIABLES))


@cache
def _check_container(backend: Container) -> None:
    check_works(backend)
