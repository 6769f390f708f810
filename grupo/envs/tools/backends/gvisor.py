"""gVisor: a kernel in user space, of which a program's system calls never reach the host's."""

import json
import shlex
import sys
import uuid
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from grupo.core.component import component
from grupo.envs.tools.backends.cgroups import cgroup_parents, limited_cgroup
from grupo.envs.tools.backends.namespaces import (
    PID_NAMESPACE,
    find_tool,
    isolated_command,
    package_setup,
    scratch_folder,
)
from grupo.envs.tools.backends.process import check_works
from grupo.envs.tools.backends.program import (
    host_python,
    python_command,
    system_folders,
    system_links,
)
from grupo.envs.tools.backends.protocol import MIB, PACKAGE_FOLDER, Launch, ProgramLimits
from grupo.envs.tools.seccomp import oci_profile
from grupo.util.errors import ConfigError

OPTIONS = ("--network=none", "--ignore-cgroups", "--rootless", "--oci-seccomp", "--overlay=false")
# gVisor's filter returns EPERM where glibc needs ENOSYS to fall back from clone3 to clone. Where
# gVisor has clone3, a program can start processes with it, up to the limits of the cgroup.
MORE_ALLOWED = "clone3"
KERNEL_MIB = 512  # of the cgroup, for gVisor's own kernel
KERNEL_PROCESSES = 512
BUNDLE_SCRIPT = """\
mkdir -m 1777 state
mkdir bundle bundle/rootfs
cd bundle/rootfs
mkdir -p tmp {mount_points}
{links}
cd ..
printf %s {config} > config.json
"""


@component
class Gvisor:
    """Runs programs in gVisor's `runsc`, rootless and without an image, from an OCI bundle.

    Of the host's files a program sees /usr, this Python installation and the packages of the
    sandbox, all read-only.

    Args:
        platform: Platform of runsc, such as "systrap", "ptrace" or "kvm"; "" is its default.
    """

    platform: str = ""

    def check_machine(self) -> None:
        """Raises `ConfigError` where runsc is missing or does not work."""
        _check_gvisor(self)

    @contextmanager
    def launch(self, limits: ProgramLimits, packages: Sequence[Path] = ()) -> Generator[Launch]:
        """The runsc command, in a PID namespace of its own: its processes end with the first.

        Raises:
            ConfigError: runsc is missing, or the program may start processes.
        """
        if limits.allows_processes:
            raise ConfigError(
                "sandbox: processes: gVisor does not count the processes of a program, which its"
                " own kernel makes. Allowed: Bubblewrap() or Container(image)."
            )
        memory_mib = limits.total_memory_mib + KERNEL_MIB
        with limited_cgroup(memory_mib, KERNEL_PROCESSES) as cgroup_files:
            command = isolated_command(
                self._runsc_command(),
                limits,
                cgroup_files=cgroup_files,
                more_setup=f"{package_setup(packages)}\n{_bundle_script(limits, packages)}",
                namespaces=(*PID_NAMESPACE, "--net"),
            )
            yield Launch(command)

    def unavailable_limits(self) -> tuple[str, ...]:
        """Limits that cannot be enforced for this user on this machine, in words."""
        if cgroup_parents():
            return ()
        return (
            "memory of gVisor's kernel, with the temporary folder",
            "number of processes and threads",
        )

    def _runsc_command(self) -> tuple[str, ...]:
        platform = (f"--platform={self.platform}",) if self.platform else ()
        scratch = scratch_folder()
        return (
            *(find_tool("runsc", "gVisor"), *OPTIONS, *platform, f"--root={scratch}/state"),
            *("run", f"--bundle={scratch}/bundle", f"grupo-{uuid.uuid4().hex}"),
        )


def oci_config(limits: ProgramLimits, packages: Sequence[Path] = ()) -> dict[str, Any]:
    """The `config.json` of the OCI runtime specification for one program."""
    return {
        "ociVersion": "1.0.2",
        "hostname": "sandbox",
        "root": {"path": "rootfs", "readonly": True},
        "process": {
            "user": {"uid": 65534, "gid": 65534},
            "args": python_command(host_python(), limits, packages),
            "env": [],
            "cwd": "/tmp",
            "capabilities": {},
            "noNewPrivileges": True,
        },
        "mounts": [*_oci_mounts(packages), _temporary_folder(limits)],
        "linux": {
            "namespaces": [{"type": name} for name in ("pid", "network", "ipc", "uts", "mount")],
            "seccomp": oci_profile(MORE_ALLOWED, allows_processes=False),
        },
    }


def _oci_mounts(packages: Sequence[Path]) -> list[dict[str, Any]]:
    return [
        {"destination": path, "type": "bind", "source": source, "options": ["ro", "rbind"]}
        for path, source in _visible_folders(packages).items()
    ]


def _temporary_folder(limits: ProgramLimits) -> dict[str, Any]:
    options = ["nosuid", "nodev", "mode=1777", f"size={limits.disk_mib * MIB}"]
    return {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": options}


def _visible_folders(packages: Sequence[Path]) -> dict[str, str]:
    """The host folder that is mounted at each path."""
    folders = {folder: folder for folder in system_folders()}
    if not sys.base_prefix.startswith("/usr/"):
        folders[sys.base_prefix] = f"{scratch_folder()}/python"
    if packages:
        folders[PACKAGE_FOLDER] = f"{scratch_folder()}/packages"
    return folders


def _bundle_script(limits: ProgramLimits, packages: Sequence[Path]) -> str:
    """Lines of a shell script that write the bundle: its configuration and an empty root."""
    links = system_links().items()
    return BUNDLE_SCRIPT.format(
        mount_points=shlex.join(f".{path}" for path in _visible_folders(packages)),
        links="\n".join(shlex.join(("ln", "-s", target, f".{link}")) for link, target in links),
        config=shlex.quote(json.dumps(oci_config(limits, packages))),
    )


@cache
def _check_gvisor(backend: Gvisor) -> None:
    check_works(backend)
