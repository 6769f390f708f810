"""Bubblewrap: Linux namespaces without a container image; the fastest backend."""

import os
import sys
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

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
    LINUX_LIMITS,
    host_python,
    python_command,
    system_folders,
    system_links,
)
from grupo.envs.tools.backends.protocol import (
    PACKAGE_FOLDER,
    Launch,
    ProgramLimits,
)
from grupo.envs.tools.seccomp import bpf_filter
from grupo.util.errors import ConfigError

OPTIONS = (
    *("--unshare-user", "--uid", "65534", "--gid", "65534", "--disable-userns"),
    *("--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--cap-drop", "ALL", "--die-with-parent", "--new-session", "--clearenv"),
    *("--hostname", "sandbox"),
)
DEVICES = ("null", "zero", "full", "random", "urandom")
LAUNCHER_MIB = 64  # of the cgroup, beyond the program's memory and its temporary folder
LAUNCHER_PROCESSES = 8
NPROC_PER_NAMESPACE = (5, 14)  # the kernel that counts threads by user namespace


@component
class Bubblewrap:
    """Runs programs in bubblewrap: one process, no /proc, no network, a filter of system calls.

    Of the host's files a program sees /usr, this Python installation and the packages of the
    sandbox, all read-only.
    """

    def check_machine(self) -> None:
        """Raises `ConfigError` where bubblewrap or libseccomp is missing or does not work."""
        _check_bubblewrap(self)

    @contextmanager
    def launch(self, limits: ProgramLimits, packages: Sequence[Path] = ()) -> Generator[Launch]:
        """The bwrap command; it reads the filter of system calls from a file descriptor."""
        if limits.allows_processes and "number of threads" in self.unavailable_limits():
            raise ConfigError(
                "sandbox: processes: this machine does not count the processes of a program."
                f" Allowed: None here, or {limits.processes} where this user can make a cgroup or"
                " the kernel is Linux 5.14 or later."
            )
        memory_mib = limits.total_memory_mib + LAUNCHER_MIB
        with (
            tempfile.TemporaryFile() as file,
            limited_cgroup(memory_mib, limits.max_tasks + LAUNCHER_PROCESSES) as cgroup_files,
        ):
            file.write(bpf_filter(allows_processes=limits.allows_processes))
            file.seek(0)
            bwrap, python = (
                _bwrap_command(file.fileno(), packages),
                _python_command(limits, packages),
            )
            # bubblewrap's first process asks for its end with the other one only when it has waited
            # for it. For root the cgroup ends both, and unshare would stay as a process of root
            namespaces = () if os.geteuid() == 0 else PID_NAMESPACE
            isolated = isolated_command(
                (*bwrap, "--", *python),
                limits,
                cgroup_files=cgroup_files,
                more_setup=package_setup(packages),
                namespaces=namespaces,
            )
            yield Launch(isolated, pass_fds=(file.fileno(),))

    def unavailable_limits(self) -> tuple[str, ...]:
        """Limits that cannot be enforced for this user on this machine, in words."""
        has_cgroup, has_thread_limit = bool(cgroup_parents()), _limits_threads()
        missing = {
            "memory of the kernel for the program, such as that of pipes": has_cgroup,
            "number of threads": has_cgroup or has_thread_limit,
        }
        return tuple(limit for limit, is_available in missing.items() if not is_available)


def _bwrap_command(filter_fd: int, packages: Sequence[Path]) -> Iterator[str]:
    yield from (find_tool("bwrap", "bubblewrap"), *OPTIONS)
    for folder in system_folders():
        yield from ("--ro-bind", folder, folder)
    for link, target in system_links().items():
        yield from ("--symlink", target, link)
    scratch = scratch_folder()
    if not sys.base_prefix.startswith("/usr/"):
        yield from ("--ro-bind", f"{scratch}/python", sys.base_prefix)
    if packages:
        yield from ("--ro-bind", f"{scratch}/packages", PACKAGE_FOLDER)
    for name in DEVICES:
        yield from ("--dev-bind", f"/dev/{name}", f"/dev/{name}")
    yield from ("--bind", f"{scratch}/tmp", "/tmp", "--chdir", "/tmp")
    yield from ("--remount-ro", "/", "--seccomp", str(filter_fd))


def _python_command(limits: ProgramLimits, packages: Sequence[Path]) -> tuple[str, ...]:
    thread_limit = {"RLIMIT_NPROC": limits.max_tasks} if _limits_threads() else {}
    return python_command(host_python(), limits, packages, **LINUX_LIMITS, **thread_limit)


def _limits_threads() -> bool:
    """True if the kernel counts the threads of one sandbox, and not all of the user's."""
    major, minor = os.uname().release.split(".")[:2]
    return (int(major), int(minor.split("-")[0])) >= NPROC_PER_NAMESPACE


@cache
def _check_bubblewrap(backend: Bubblewrap) -> None:
    check_works(backend)
