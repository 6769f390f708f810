"""Find TRL's fastest settings on this machine: one setting at a time, the median of some steps.

    python -m benchmarks.tune short long --steps 5

A setting that is faster than `current` by more than the noise belongs into
`trl_worker.FIXED_SETTINGS`, or into `microbatch_rows` of the workload.
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
    """Return candidate settings by name: micro-batch sizes, caches and the optimizer."""
    microbatches = {rows: workload.rows // rows for rows in (workload.rows, 64, 32, 16, 8, 4)}
    microbatch_settings = {
        f"micro-batches of {rows}": {
            "per_device_train_batch_size": rows,
            "gradient_accumulation_steps": count,
        }
        for rows, count in microbatches.items()
        if count and rows != (workload.microbatch_rows or workload.rows)
    }
    return {
        "current": {},
        **microbatch_settings,
        "static cache": {"cache_implementation": "static"},
        "continuous batching": {"use_transformers_continuous_batching": True},
        "optimizer not fused": {"optim": "adamw_torch"},
    }


def measure_setting(
    name: str, precision: str, steps: int, python: Path, setting: dict[str, Any]
) -> str:
    """Return the table cells of a setting, or the reason of its failure."""
    try:
        with closing(Worker("trl_worker", python, name, precision, json.dumps(setting))) as worker:
            worker.step()  # warms up
            measurements = [worker.step() for _ in range(steps)]
    except WorkerDied as error:
        return f"failed: {str(error).splitlines()[-1]}"
    numbers = [
        median(step["seconds"] for step in measurements),
        min(step["seconds"] for step in measurements),
        median(step["sample"] for step in measurements),
        median(step["update"] for step in measurements),
        measurements[-1]["peak"] / 1e9,
        max(step["others"] for step in measurements),
    ]
    return "|".join(f"{number:.2f}" for number in numbers)


def main() -> None:
    """Print a row per workload and setting."""
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
        for label, setting in candidate_settings(WORKLOADS[name]).items():
            row = measure_setting(name, args.precision, args.steps, python, setting)
            print(f"|{name}|{label}|{row}|", flush=True)


if __name__ == "__main__":
    main()
