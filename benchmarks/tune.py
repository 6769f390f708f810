"""Which of TRL's settings are its fastest here: one setting at a time, the median of some steps.

    python -m benchmarks.tune short long --steps 5

What is faster than `as it is` by more than the noise belongs into `peer.settings`, or into the
workload's `micro`.
"""

import argparse
import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.compare import HERE, Worker, WorkerDied
from benchmarks.workloads import WORKLOADS, Workload

TABLE_HEADER = (
    "|workload|setting|seconds|fastest|sampling|update|peak GB|others|\n" + "|---" * 8 + "|"
)


def candidate_settings(workload: Workload) -> dict[str, dict[str, Any]]:
    """Settings by name: how rows are cut, and how `generate` keeps what it has read."""
    cuts = {rows: workload.rows // rows for rows in (workload.rows, 64, 32, 16, 8, 4)}
    micro = {
        f"micro-batches of {rows}": {
            "per_device_train_batch_size": rows,
            "gradient_accumulation_steps": count,
        }
        for rows, count in cuts.items()
        if count and rows != (workload.microbatch_rows or workload.rows)
    }
    return {
        "as it is": {},
        **micro,
        "static cache": {"cache_implementation": "static"},
        "continuous batching": {"use_transformers_continuous_batching": True},
        "optimizer not fused": {"optim": "adamw_torch"},
    }


def measure_setting(
    name: str, precision: str, steps: int, python: Path, setting: dict[str, Any]
) -> str:
    """Its row, or why it has none."""
    try:
        with closing(Worker("peer", python, name, precision, json.dumps(setting))) as worker:
            worker.step()  # warms up
            said = [worker.step() for _ in range(steps)]
    except WorkerDied as death:
        return f"failed: {str(death).splitlines()[-1]}"
    parts = [median(step[part] for step in said) for part in ("seconds", "sample", "update")]
    numbers = [parts[0], min(step["seconds"] for step in said), *parts[1:], said[-1]["peak"] / 1e9]
    return "|".join(f"{x:.2f}" for x in (*numbers, max(step["others"] for step in said)))


def main() -> None:
    """A table for each workload that was named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=WORKLOADS, metavar="NAME")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--trl", type=Path, default=HERE / ".trl")
    args = parser.parse_args()
    python = args.trl / "bin" / "python"
    subprocess.run([sys.executable, "-m", "benchmarks.models", *args.names], check=True)
    print(TABLE_HEADER)
    for name in args.names:
        for says, setting in candidate_settings(WORKLOADS[name]).items():
            row = measure_setting(name, args.precision, args.steps, python, setting)
            print(f"|{name}|{says}|{row}|", flush=True)


if __name__ == "__main__":
    main()
