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

from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.envs.tools.seccomp import one_process

MIB = 1 << 20
PRINTED = MIB  # bytes of output, and of any file
# soft and hard alike, set before the program is read: nobody in there can raise them
LAUNCH = """\
import resource, sys
for name, value in {limits}: resource.setrlimit(getattr(resource, name), (value, value))
exec(compile(sys.stdin.buffer.read(), "<program>", "exec"), {{"__name__": "__main__"}})
"""
SHUT_IN = (
    *("--unshare-user", "--uid", "65534", "--gid", "65534", "--disable-userns"),
    *("--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--cap-drop", "ALL", "--die-with-parent", "--new-session", "--clearenv"),
    *("--hostname", "sandbox", "--proc", "/proc", "--dev", "/dev"),
)


@piece
class Sandbox:
    """Runs Python programs for `seconds` at most, in `memory` MiB, with a folder of `disk` MiB."""

    seconds: float = 5.0
    memory: int = 512
    disk: int = 16

    def __post_init__(self) -> None:
        for name in ("seconds", "memory", "disk"):
            if getattr(self, name) <= 0:
                raise Refused(f"{name}: {getattr(self, name)}. Allowed: above 0.")

    def check(self) -> None:
        """Refuse a machine on which programs cannot be shut in."""
        _check_works()

    def run(self, code: str) -> str:
        """What the program prints, and how it ended if not well."""
        with _filter() as filtered, tempfile.TemporaryFile() as output:
            command = [*self._command(), "--seccomp", str(filtered.fileno()), "--", *self._python()]
            shut_in = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[filtered.fileno()],
            )
            ended = _ended(shut_in, code.encode(), self.seconds)
            output.seek(0)
            printed = output.read(PRINTED).decode(errors="replace").rstrip()
        return "\n".join(filter(None, (printed, ended)))

    def _command(self) -> list[str]:
        program = shutil.which("bwrap")
        if program is None:
            raise Refused("sandbox: bwrap is not here. Install bubblewrap, or take the tool out.")
        space = ("--size", str(self.disk * MIB), "--tmpfs", "/tmp", "--chdir", "/tmp")
        closed = ("--remount-ro", "/dev", "--remount-ro", "/")
        return [program, *SHUT_IN, *_system(), *space, *closed]

    def _python(self) -> list[str]:
        limits = {
            "RLIMIT_AS": self.memory * MIB,
            "RLIMIT_CPU": int(self.seconds) + 1,
            "RLIMIT_FSIZE": PRINTED,
            "RLIMIT_NOFILE": 64,
            "RLIMIT_CORE": 0,
        }
        python = os.path.realpath(sys.executable)
        return [python, "-I", "-S", "-B", "-c", LAUNCH.format(limits=list(limits.items()))]


def _ended(shut_in: "subprocess.Popen[bytes]", code: bytes, seconds: float) -> str:
    """How a program ended that did not end well; it and all of its group are gone by then."""
    try:
        shut_in.communicate(code, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"(stopped after {seconds} s)"
    finally:
        _kill(shut_in)
    return f"(ended with {shut_in.returncode})" if shut_in.returncode else ""


def _kill(shut_in: "subprocess.Popen[bytes]") -> None:
    """With bwrap its namespace of processes ends, and everybody in it."""
    if shut_in.poll() is None:
        os.killpg(shut_in.pid, signal.SIGKILL)
        shut_in.wait()


@contextmanager
def _filter() -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as file:
        file.write(one_process())
        file.seek(0)
        yield file


def _system() -> Iterator[str]:
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
def _check_works() -> None:
    said = Sandbox(seconds=20.0).run("print('shut in')")
    if said != "shut in":
        last = said.strip().splitlines()[-1:] or ["it said nothing"]
        raise Refused(
            f"sandbox: bwrap does not work here: {said.splitlines()[0] if said else last[0]}."
            " Allowed: a machine with user namespaces; or take the tool out."
        )
