"""The end of a program's error output is kept, whatever it writes."""

import subprocess
import sys
from contextlib import closing

import pytest

from grupo.envs.tools.error_output import KEPT_BYTES, ErrorOutput


def run(code):
    """The last line of a Python program's error output, and the bytes that are kept."""
    with closing(ErrorOutput()) as error_output:
        command = [sys.executable, "-I", "-S", "-c", f"import os\n{code}"]
        subprocess.run(command, stderr=error_output.file, check=False)
        return error_output.last_line(), error_output._kept


@pytest.mark.parametrize(
    ("code", "last_line"),
    [
        ("os.write(2, b'first\\nlast\\n\\n')", "last"),
        ("os.write(2, b'\\xff\\xfe broken\\n')", "\ufffd\ufffd broken"),
        ("", ""),
    ],
)
def test_the_last_line_is_read(code, last_line):
    assert run(code)[0] == last_line


def test_a_flood_is_read_and_forgotten():
    flood = "[os.write(2, b'e' * (1 << 20)) for _ in range(64)]; os.write(2, b'\\nend')"
    last_line, kept = run(flood)
    assert last_line == "end"
    assert len(kept) == KEPT_BYTES


def test_a_process_that_keeps_the_pipe_open_does_not_delay_the_line():
    child = "if os.fork() == 0:\n    import time\n    time.sleep(5)"
    assert run(f"os.write(2, b'last\\n')\n{child}")[0] == "last"
