"""The command that runs a Python program inside a sandbox, and the host folders that it needs."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from grupo.envs.tools.backends.protocol import (
    MAX_OPEN_FILES,
    MAX_OUTPUT_BYTES,
    MIB,
    PACKAGE_FOLDER,
    ProgramLimits,
)

# soft and hard limits are set before the program is read, so the program cannot raise them; output
# and errors share a descriptor, because gVisor does not wait for a full pipe that it has twice
LIMIT_CODE = """\
import os, resource, sys
os.dup2(1, 2)
for name, value in {limits}:
    kind = getattr(resource, name)
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))
"""
# BLAS and OpenMP reserve memory for each of their threads, by default one for each processor
PACKAGE_CODE = f"""\
os.environ["OMP_NUM_THREADS"] = "1"
sys.path.append({PACKAGE_FOLDER!r})
"""
STARTED = b"\x02"  # what the command writes before it reads the program, which cannot take it back
RUN_CODE = f"""\
os.write(1, {STARTED!r})
exec(compile(sys.stdin.buffer.read(), "<program>", "exec"), {{"__name__": "__main__"}})
"""
LINUX_LIMITS = {"RLIMIT_MSGQUEUE": 0, "RLIMIT_SIGPENDING": 64}  # gVisor has neither queue
PYTHON_OPTIONS = ("-I", "-S", "-B", "-X", "utf8")


def python_command(
    python: str, limits: ProgramLimits, packages: Sequence[Path] = (), **more_limits: int
) -> tuple[str, ...]:
    """The command that sets resource limits, reads a program from standard input and runs it.

    Args:
        python: Path of the Python executable in the sandbox.
        limits: Limits of the program.
        packages: Packages of the sandbox, if any.
        more_limits: Further resource limits by name, such as `RLIMIT_NPROC`.
    """
    values = {
        "RLIMIT_AS": limits.memory_mib * MIB,
        "RLIMIT_CPU": int(limits.time_limit) + 1,
        "RLIMIT_FSIZE": MAX_OUTPUT_BYTES,
        "RLIMIT_NOFILE": MAX_OPEN_FILES,
        # 0 would still start the program of a kernel.core_pattern that is a pipe; see core(5)
        "RLIMIT_CORE": 1,
        "RLIMIT_MEMLOCK": 0,
        **more_limits,
    }
    package_code = PACKAGE_CODE if packages else ""
    code = LIMIT_CODE.format(limits=list(values.items())) + package_code + RUN_CODE
    return (python, *PYTHON_OPTIONS, "-c", code)


def host_python() -> str:
    """The executable of this Python, the same path inside and outside of the sandbox."""
    return os.path.realpath(sys.executable)


def system_folders() -> tuple[str, ...]:
    """Folders of the host that a program reads: /usr, and what belongs to it but lies outside."""
    return ("/usr", *(name for name in ("/bin", "/lib", "/lib64") if _is_own_folder(name)))


def system_links() -> Mapping[str, str]:
    """Symbolic links of the host's root that lead into /usr, such as /lib."""
    names = ("/bin", "/lib", "/lib64")
    return {name: os.readlink(name) for name in names if Path(name).is_symlink()}


def _is_own_folder(name: str) -> bool:
    return Path(name).is_dir() and not Path(name).is_symlink()
