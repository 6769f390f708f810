"""Programs shut in by bubblewrap: no network, no files but a small folder, one process, limits.

Of the host they see /usr and the Python that runs this, neither of which can be written to.
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
from grupo.envs.tools.seccomp import single_process_filter

MIB = 1 << 20
MAX_OUTPUT_BYTES = MIB  # bytes of output, and of any file
# soft and hard alike, set before the program is read: nobody in there can raise them
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
    """Runs Python programs for `seconds` at most, in `memory` MiB, with a folder of `disk` MiB."""

    time_limit: float = 5.0
    memory_mib: int = 512
    disk_mib: int = 16

    def __post_init__(self) -> None:
        for name in ("seconds", "memory", "disk"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name}: {getattr(self, name)}. Allowed: above 0.")

    def check(self) -> None:
        """Refuse a machine on which programs cannot be shut in."""
        _check_bwrap()

    def run(self, code: str) -> str:
        """What the program prints, and how it ended if not well."""
        with _seccomp_file() as filtered, tempfile.TemporaryFile() as output:
            command = [
                *self._bwrap_command(),
                "--seccomp",
                str(filtered.fileno()),
                "--",
                *self._python_command(),
            ]
            shut_in = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[filtered.fileno()],
            )
            ended = _exit_message(shut_in, code.encode(), self.time_limit)
            output.seek(0)
            printed = output.read(MAX_OUTPUT_BYTES).decode(errors="replace").rstrip()
        return "\n".join(filter(None, (printed, ended)))

    def _bwrap_command(self) -> list[str]:
        program = shutil.which("bwrap")
        if program is None:
            raise ConfigError(
                "sandbox: bwrap is not here. Install bubblewrap, or take the tool out."
            )
        space = ("--size", str(self.disk_mib * MIB), "--tmpfs", "/tmp", "--chdir", "/tmp")
        closed = ("--remount-ro", "/dev", "--remount-ro", "/")
        return [program, *BWRAP_OPTIONS, *_system_mounts(), *space, *closed]

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
    """How a program ended that did not end well; it and all of its group are gone by then."""
    try:
        process.communicate(code, timeout=time_limit)
    except subprocess.TimeoutExpired:
        return f"(stopped after {time_limit} s)"
    finally:
        _kill(process)
    return f"(ended with {process.returncode})" if process.returncode else ""


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """With bwrap its namespace of processes ends, and everybody in it."""
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
    """What of the host can be seen: /usr, what leads into it, and the Python of this process."""
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
    said = Sandbox(time_limit=20.0).run("print('shut in')")
    if said != "shut in":
        last = said.strip().splitlines()[-1:] or ["it said nothing"]
        raise ConfigError(
            f"sandbox: bwrap does not work here: {said.splitlines()[0] if said else last[0]}."
            " Allowed: a machine with user namespaces; or take the tool out."
        )
