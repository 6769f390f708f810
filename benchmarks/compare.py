"""Compare grupo with TRL: the same model, prompts, lengths, precision and threads.

    python -m benchmarks.compare short long --pairs 10 --precision float32

One worker process per library loads the model and runs a warm-up step. Then the workers alternate;
the order within a pair changes from pair to pair, and pairs measured while other programs were busy
are repeated. Without names, every workload with a small model is measured. The results accumulate
in a JSON file, from which a Markdown page and its figures are generated.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.page import write_page
from benchmarks.processor import CpuClock
from benchmarks.summary import summarize_pairs
from benchmarks.workloads import SMALL_WORKLOADS, THREADS, WORKLOADS

HERE = Path(__file__).parent
Measurements = dict[str, Any]
Pair = tuple[Measurements, Measurements]
MAX_OTHER_CORES = 0.2  # cores that other programs may keep busy during a pair


class WorkerDied(Exception):
    """A worker process ended before its result."""


class Worker:
    """A process that runs one step per request.

    Args:
        module: the module of `benchmarks` to run.
        python: the interpreter to run it with.
        arguments: command-line arguments of the module.
    """

    def __init__(self, module: str, python: Path, *arguments: str) -> None:
        self.name = " ".join((module, *arguments))
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - `close` closes it
        self.process = subprocess.Popen(
            [python, "-m", f"benchmarks.{module}", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            cwd=HERE.parent,
            env={**os.environ, "OMP_NUM_THREADS": str(THREADS)},
        )
        self.startup = self.read_reply()

    def step(self) -> Measurements:
        """Run a step; return its measurements and the number of cores busy with other processes."""
        assert self.process.stdin is not None
        before = CpuClock.of(self.process.pid)
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        measurements = self.read_reply()
        return measurements | {"others": CpuClock.of(self.process.pid).other_cores(before)}

    def read_reply(self) -> Measurements:
        """Return the worker's next reply; raise `WorkerDied` with its last errors if it ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.errors.seek(0)
        last_errors = "".join(self.errors.readlines()[-12:])
        exit_code = self.process.wait()
        raise WorkerDied(f"{self.name} ended with exit code {exit_code}:\n{last_errors}")

    def close(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.wait()
        self.errors.close()


def measure_workload(name: str, precision: str, pairs: int, python: Path) -> Measurements:
    """Measure pairs of steps of both libraries; return their summary.

    Args:
        name: the workload.
        precision: float32 or bfloat16.
        pairs: number of pairs.
        python: the interpreter of TRL's environment.
    """
    workers: list[Worker] = []
    try:
        for module, binary in (("grupo_worker", Path(sys.executable)), ("trl_worker", python)):
            workers.append(Worker(module, binary, name, precision))
            workers[-1].step()  # the first step warms up
        grupo, trl = workers
        return summarize_pairs(_undisturbed_pairs(grupo, trl, pairs), grupo.startup, trl.startup)
    finally:
        for worker in workers:
            worker.close()


def _undisturbed_pairs(grupo: Worker, trl: Worker, num_pairs: int) -> list[Pair]:
    """Measure until enough pairs are undisturbed, at most 3 * `num_pairs`; return the best.

    Other programs slow the two libraries by different factors, so disturbed pairs would bias the
    ratio.
    """
    pairs: list[Pair] = []
    undisturbed = 0
    while undisturbed < num_pairs and len(pairs) < 3 * num_pairs:
        pairs.append(_step_pair(grupo, trl, len(pairs)))
        undisturbed += _other_cores(pairs[-1]) < MAX_OTHER_CORES
    return sorted(pairs, key=_other_cores)[:num_pairs]


def _other_cores(pair: Pair) -> float:
    return max(measurements["others"] for measurements in pair)


def _step_pair(grupo: Worker, trl: Worker, number: int) -> Pair:
    """Run a step of each library; the order alternates with the number of the pair."""
    order = (grupo, trl) if number % 2 == 0 else (trl, grupo)
    measurements = {worker: worker.step() for worker in order}
    return measurements[grupo], measurements[trl]


def save_result(path_stem: Path, name: str, precision: str, result: Measurements) -> None:
    """Add a result to the JSON file and regenerate the page."""
    file = path_stem.with_suffix(".json")
    results = json.loads(file.read_text()) if file.is_file() else {}
    results.setdefault(name, {})[precision] = result
    order = [workload for workload in WORKLOADS if workload in results]
    file.parent.mkdir(parents=True, exist_ok=True)
    ordered = {workload: results[workload] for workload in order}
    file.write_text(json.dumps(ordered, indent=1) + "\n")
    write_page(path_stem)


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=RawDefaultsFormatter)
    parser.add_argument("names", nargs="*", choices=[*WORKLOADS, []], default=[], metavar="NAME")
    parser.add_argument("--pairs", type=int, default=0, help="0: 10 in float32, 3 in bfloat16")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), help="None: both")
    parser.add_argument(
        "--out", type=Path, default=HERE / "results" / "cpu", help="path without suffix"
    )
    parser.add_argument("--trl", type=Path, default=HERE / ".trl", help="TRL's environment")
    return parser.parse_args()


class RawDefaultsFormatter(
    argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter
):
    """Keeps the line breaks of the description and prints default values."""


def main() -> int:
    """Measure the chosen workloads; return the number of measurements whose worker died."""
    args = arguments()
    failures = 0
    names = args.names or list(SMALL_WORKLOADS)
    subprocess.run([sys.executable, "-m", "benchmarks.models", *names], check=True, cwd=HERE.parent)
    cells = [(name, precision) for name in names for precision in WORKLOADS[name].precisions]
    for name, precision in cells:
        if args.precision not in (None, precision):
            continue
        pairs = args.pairs or {"float32": 10, "bfloat16": 3}[precision]
        try:
            result = measure_workload(name, precision, pairs, args.trl / "bin" / "python")
        except WorkerDied as error:
            print(f"{name}, {precision}: {error}", file=sys.stderr)
            failures += 1
            continue
        save_result(args.out, name, precision, result)
        print(f"{name}, {precision}: {result['ratio']:.2f} times as fast", flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(main())
