"""Measure the cost of the journals' checksums: per appended line, and to verify a journal.

    python benchmarks/journal.py [GIGABYTES]

Lines have the size of a rollout with 500 tokens. The checksums alone are timed as well, because
most of the time of an append is spent on JSON and system calls.
"""

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from grupo.storage.journal import Journal
from grupo.storage.line_checksums import LineChecksums

LINES_PER_STEP = 64


def record(step: int) -> dict[str, object]:
    """A line of about 2 kB."""
    return {"step": step, "prompt": "2 + 2 = " * 20, "text": "four and " * 200, "reward": 0.5}


def main(gigabytes: float) -> None:
    """Write a journal, verify it, and print the times."""
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "rollouts.jsonl")
        step = 0
        start = time.process_time()
        while journal.length() < gigabytes * 1e9:
            journal.append(*[record(step)] * LINES_PER_STEP)
            step += 1
        append_seconds = (time.process_time() - start) / step
        lines = journal.path.read_bytes()[: 1 << 24].splitlines(keepends=True)
        start = time.process_time()
        LineChecksums().add(lines)
        checksum_seconds = (time.process_time() - start) / len(lines) * LINES_PER_STEP
        state = journal.state(step)
        start = time.process_time()
        journal.verify(state)
        verify_seconds = time.process_time() - start
        gigabytes = state.length / 1e9
        sums = state.checksums
        print(
            f"append {LINES_PER_STEP} lines: {1e3 * append_seconds:.2f} ms, of which checksums"
            f" {1e3 * checksum_seconds:.3f} ms; verify {gigabytes:.2f} GB in {sums.num_lines}"
            f" lines: {verify_seconds:.2f} s; checksums: {16 * len(sums.crcs) / 1e3:.0f} kB"
        )


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
