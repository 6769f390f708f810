"""Python programs in a bubblewrap sandbox: no network, no host files, one process, hard limits.

Of the host's files a program sees /usr and this Python installation, both read-only.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.ranges import PositiveInt, Seconds
from grupo.envs.tools.seccomp import single_process_filter

MIB = 1 << 20
MAX_OUTPUT_BYTES = MIB  # of the output, and of any file that the program writes
# soft and hard limits are set before the program is read, so the program cannot raise them
LAUNCH_CODE = """\
import resource, sys
for name, value in {limits}: resource.setrlimit(getattr(resource, name), (value, value))
exec(compile(sys.stdin.buffer.read(), "<program>", "exec"), {{"__name__": "__main__"}})
"""
BWRAP_OPTIONS = (
    *("--unshare-user", "--uid", "65534", "--gid", "65534", "--disable-userns"),
    *("--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--cap-drop", "ALL", "--die-with-parent", "--new-session", "--clearenv"),
    *("--hostname", "sandbox", "--proc", "/proc", "--dev", "/dev"),
)


@component
class Sandbox:
    """Runs Python programs in bubblewrap.

    Args:
        time_limit: Wall-clock seconds after which a program is killed.
        memory_mib: Address space of a program, in MiB.
        disk_mib: Size of its temporary folder, in MiB; the folder is deleted afterwards.
    """

    time_limit: Seconds = 5.0
    memory_mib: PositiveInt = 512
    disk_mib: PositiveInt = 16

    def check(self) -> None:
        """Raises `ConfigError` where bubblewrap is missing or does not work."""
        _check_bwrap()

    def run(self, code: str) -> str:
        """The program's output, and a last line with the exit status if it failed."""
        with _seccomp_file() as seccomp, tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                [
                    *self._bwrap_command(),
                    *("--seccomp", str(seccomp.fileno())),
                    "--",
                    *self._python_command(),
                ],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[seccomp.fileno()],
            )
            exit_message = _exit_message(process, code.encode(), self.time_limit)
            output.seek(0)
            printed = output.read(MAX_OUTPUT_BYTES).decode(errors="replace").rstrip()
        return "\n".join(filter(None, (printed, exit_message)))

    def _bwrap_command(self) -> list[str]:
        program = shutil.which("bwrap")
        if program is None:
            raise ConfigError(
                "sandbox: bwrap is not installed. Install bubblewrap, or remove the tool."
            )
        tmp_folder = ("--size", str(self.disk_mib * MIB), "--tmpfs", "/tmp", "--chdir", "/tmp")
        read_only = ("--remount-ro", "/dev", "--remount-ro", "/")
        return [program, *BWRAP_OPTIONS, *_system_mounts(), *tmp_folder, *read_only]

    def _python_command(self) -> list[str]:
        limits = {
            "RLIMIT_AS": self.memory_mib * MIB,
            "RLIMIT_CPU": int(self.time_limit) + 1,
            "RLIMIT_FSIZE": MAX_OUTPUT_BYTES,
            "RLIMIT_NOFILE": 64,
            "RLIMIT_CORE": 0,
        }
        python = os.path.realpath(sys.executable)
        return [python, "-I", "-S", "-B", "-c", LAUNCH_CODE.format(limits=list(limits.items()))]


def _exit_message(process: "subprocess.Popen[bytes]", code: bytes, time_limit: float) -> str:
    """How the program failed, "" if it succeeded; kills it and its process group in any case."""
    try:
        process.communicate(code, timeout=time_limit)
    except subprocess.TimeoutExpired:
        return f"(stopped after {time_limit} s)"
    finally:
        _kill(process)
    return f"(ended with {process.returncode})" if process.returncode else ""


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill bwrap; the kernel then kills every process of its PID namespace."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def _seccomp_file() -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as file:
        file.write(single_process_filter())
        file.seek(0)
        yield file


def _system_mounts() -> Iterator[str]:
    """The visible host folders: /usr, the links into it, and this Python installation."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in ("/bin", "/lib", "/lib64"):
        path = Path(name)
        if path.is_symlink():
            yield from ("--symlink", os.readlink(name), name)
        elif path.is_dir():
            yield from ("--ro-bind", name, name)
    if not sys.base_prefix.startswith("/usr/"):
        yield from ("--ro-bind", sys.base_prefix, sys.base_prefix)


@lru_cache(maxsize=1)
def _check_bwrap() -> None:
    output = Sandbox(time_limit=20.0).run("print('works')")
    if output != "works":
        first_line = (output.strip().splitlines() or ["it printed nothing"])[0]
        raise ConfigError(
            f"sandbox: bwrap does not work on this machine: {first_line}."
            " Allowed: a machine with user namespaces; or remove the tool."
        )
