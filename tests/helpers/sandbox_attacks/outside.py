"""Controls: programs outside of any sandbox, bounded in time and output."""

import os
import selectors
import signal
import subprocess
import sys
import time

MAX_OUTPUT_BYTES = 2 << 20
# only to protect the machine from a control that is wrong
BOUNDS = ("prlimit", "--as=8589934592", "--nofile=4096", "--core=0", "--stack=8388608")


def run_outside(code: str, folder: str, time_limit: float) -> str:
    """The output of a program, and how it ended or why it was stopped."""
    process = subprocess.Popen(
        [*BOUNDS, os.path.realpath(sys.executable), "-I", "-S", "-B", "-c", code],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        start_new_session=True,
    )
    with process:
        output, is_running = _read(process, time_limit)
        if len(output) > MAX_OUTPUT_BYTES:
            end = f"(more than {MAX_OUTPUT_BYTES} bytes)"
        else:
            end = "(still running)" if is_running else f"(ended with {process.returncode})"
        if is_running:
            os.killpg(process.pid, signal.SIGKILL)
    return f"{output[:9999].decode(errors='replace')}\n{end}"


def _read(process: "subprocess.Popen[bytes]", time_limit: float) -> tuple[bytes, bool]:
    """The output, and whether the program still runs after the time or the output allowed."""
    assert process.stdout is not None
    output, deadline = b"", time.monotonic() + time_limit
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(max(0.0, deadline - time.monotonic())):
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            output += chunk
            if len(output) > MAX_OUTPUT_BYTES:
                return output, True
            if not chunk:
                break
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return output, True
    return output, False
