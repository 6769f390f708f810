"""`--ranks N`: starts a command in several processes of this machine that train together."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from threading import Thread

from grupo.util.errors import ConfigError

MAIN = ("-m", "grupo")
GRACE = 10.0  # seconds that the other ranks have to say why they end, after one has ended
POLL_INTERVAL = 0.05  # seconds
LAUNCHER_PIPE = "GRUPO_LAUNCHER_PIPE"  # variable: file descriptor that is closed with the launcher


def check_num_ranks(num_ranks: int, oversubscribe: bool) -> None:
    """Raise `ConfigError` for less than one rank, or for more than this machine has cores.

    Two are always allowed, so that a run with ranks can be tried on any machine.

    Args:
        num_ranks: The number of processes.
        oversubscribe: Whether there may be more processes than cores.
    """
    most = max(2, len(os.sched_getaffinity(0)))
    if num_ranks < 1 or (num_ranks > most and not oversubscribe):
        raise ConfigError(
            f"ranks: {num_ranks}. Allowed: 1 to {most}, because the machine has"
            f" {len(os.sched_getaffinity(0))} cores; more with --oversubscribe."
        )


def end_with_launcher() -> None:
    """End this process with SIGTERM when the process that launched it has ended, however it did."""
    if LAUNCHER_PIPE in os.environ:
        pipe = int(os.environ.pop(LAUNCHER_PIPE))
        Thread(target=_wait_for_launcher, args=(pipe,), name="launcher", daemon=True).start()


def _wait_for_launcher(pipe: int) -> None:
    os.read(pipe, 1)  # nothing is written: it returns when the other end is closed
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os.kill(os.getpid(), signal.SIGKILL)


def launch(arguments: Sequence[str], num_ranks: int) -> int:
    """Run `grupo` with the arguments once per rank, and wait; returns the exit code.

    If a rank fails the others are ended, and its exit code is returned. The store by which the
    ranks find each other belongs to this process, so that it outlives each of them. The ranks end
    when this process ends, also if it is killed.
    """
    from torch.distributed import TCPStore

    store = TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=300))
    read_end, _write_end = os.pipe()  # open for as long as this process runs
    processes = [
        subprocess.Popen(
            [sys.executable, *MAIN, *arguments],
            env={
                **_environment(rank, num_ranks, store.port),
                LAUNCHER_PIPE: str(read_end),
            },
            pass_fds=(read_end,),
        )
        for rank in range(num_ranks)
    ]
    try:
        return _wait(processes)
    except KeyboardInterrupt:
        return _end(processes, 130)
    finally:
        _end(processes, 0)


def _environment(rank: int, num_ranks: int, port: int) -> dict[str, str]:
    threads = max(1, len(os.sched_getaffinity(0)) // num_ranks)
    return {
        "OMP_NUM_THREADS": str(threads),
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(num_ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }


def _wait(processes: Sequence["subprocess.Popen[bytes]"]) -> int:
    """Wait until all have ended well, or one has failed; returns its exit code."""
    while True:
        codes = [process.poll() for process in processes]
        failed = [(rank, code) for rank, code in enumerate(codes) if code]
        if failed:
            rank, code = failed[0]
            if code < 0:
                print(f"grupo: rank {rank} was ended by signal {-code}.", file=sys.stderr)
            return _end(processes, code if code > 0 else 128 - code)
        if all(code == 0 for code in codes):
            return 0
        time.sleep(POLL_INTERVAL)


def _end(processes: Sequence["subprocess.Popen[bytes]"], code: int) -> int:
    """End the processes that still run, at first with a signal that they can handle."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    deadline = time.monotonic() + GRACE
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
        process.kill()
        process.wait()
    return code
