"""grupo and TRL in turns on this machine: the same model, prompts, lengths, precision, threads.

    python -m benchmarks.compare short long --pairs 10 --precision float32

A worker for each library loads the model and takes a step to warm up. Then they take turns, and
the order in a pair changes from pair to pair; pairs during which other programs worked are tried
again. Without names, every workload is measured. What was
measured is kept in a JSON file from run to run; a Markdown page and its pictures are made from it.
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
from benchmarks.workloads import THREADS, WORKLOADS

HERE = Path(__file__).parent
Measurements = dict[str, Any]
Pair = tuple[Measurements, Measurements]
MAX_OTHER_CORES = 0.2  # cores that others may use


class WorkerDied(Exception):
    """A worker ended before it was to."""


class Worker:
    """A process that does one step whenever it is told to."""

    def __init__(self, module: str, python: Path, *arguments: str) -> None:
        self.name = " ".join((module, *arguments))
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - `close` does it
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
        """Let it do a step; its numbers."""
        assert self.process.stdin is not None
        before = CpuClock.of(self.process.pid)
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        said = self.read_reply()
        return said | {"others": CpuClock.of(self.process.pid).other_cores(before)}

    def read_reply(self) -> Measurements:
        """Its next line; raises `WorkerDied` with the last lines of its errors if there is none."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.errors.seek(0)
        last = "".join(self.errors.readlines()[-12:])
        raise WorkerDied(f"{self.name} ended with {self.process.wait()}:\n{last}")

    def close(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.wait()
        self.errors.close()


def measure_workload(name: str, precision: str, pairs: int, python: Path) -> Measurements:
    """The summary of so many pairs of steps."""
    workers: list[Worker] = []
    try:
        for module, binary in (("ours", Path(sys.executable)), ("peer", python)):
            workers.append(Worker(module, binary, name, precision))
            workers[-1].step()  # the first step warms up
        ours, peer = workers
        return summarize_pairs(_undisturbed_pairs(ours, peer, pairs), ours.startup, peer.startup)
    finally:
        for worker in workers:
            worker.close()


def _undisturbed_pairs(ours: Worker, peer: Worker, wanted: int) -> list[Pair]:
    """So many pairs, those that others disturbed tried again twice at most; the least disturbed.

    Work of others does not slow both libraries alike: what it touched says little of either.
    """
    pairs: list[Pair] = []
    while (
        sum(_other_cores(pair) < MAX_OTHER_CORES for pair in pairs) < wanted
        and len(pairs) < 3 * wanted
    ):
        pairs.append(_step_pair(ours, peer, len(pairs)))
    return sorted(pairs, key=_other_cores)[:wanted]


def _other_cores(pair: Pair) -> float:
    return max(said["others"] for said in pair)


def _step_pair(ours: Worker, peer: Worker, number: int) -> Pair:
    """A step of each; who goes first alternates."""
    order = (ours, peer) if number % 2 == 0 else (peer, ours)
    said = {worker: worker.step() for worker in order}
    return said[ours], said[peer]


def save_result(path_stem: Path, name: str, precision: str, result: Measurements) -> None:
    """Add a result to those that are there."""
    file = path_stem.with_suffix(".json")
    results = json.loads(file.read_text()) if file.is_file() else {}
    results.setdefault(name, {})[precision] = result
    order = [known for known in WORKLOADS if known in results]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({known: results[known] for known in order}, indent=1) + "\n")
    write_page(path_stem)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=RawDefaultsFormatter)
    parser.add_argument("names", nargs="*", choices=[*WORKLOADS, []], default=[], metavar="NAME")
    parser.add_argument("--pairs", type=int, default=0, help="10, in bfloat16 3, unless told")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), help="only this one")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "cpu")
    parser.add_argument("--trl", type=Path, default=HERE / ".trl", help="TRL's environment")
    return parser.parse_args()


class RawDefaultsFormatter(
    argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter
):
    """Keeps the lines of a description, and says defaults."""


def main() -> int:
    """Measure what was asked for; how many workloads a worker died of."""
    args, died = arguments(), 0
    names = args.names or list(WORKLOADS)
    subprocess.run([sys.executable, "-m", "benchmarks.models", *names], check=True, cwd=HERE.parent)
    for name, precision in [(n, p) for n in names for p in WORKLOADS[n].precisions]:
        if args.precision not in (None, precision):
            continue
        pairs = args.pairs or {"float32": 10, "bfloat16": 3}[precision]
        try:
            result = measure_workload(name, precision, pairs, args.trl / "bin" / "python")
        except WorkerDied as death:
            print(f"{name}, {precision}: {death}", file=sys.stderr)
            died += 1
            continue
        save_result(args.out, name, precision, result)
        print(f"{name}, {precision}: {result['ratio']:.2f} times as fast", flush=True)
    return died


if __name__ == "__main__":
    sys.exit(main())
