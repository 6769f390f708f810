"""Memory and time of a replay buffer of stored rollouts.

    python -m benchmarks.replay_buffer --rollouts 1000000 --per-step 1000

Fills a replay buffer in a temporary folder, draws from it by |A| and reads the drawn rollouts, and
prints the bytes in memory and the seconds of a step.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import perf_counter

import torch

from grupo.algo.replay_rules import without_replacement
from grupo.core.types import Response, Rollout
from grupo.rollouts.replay_buffer import ReplayBuffer, StoredRollout
from grupo.storage.segments import SegmentFiles

LENGTH = 50  # tokens of a rollout


def resident_mib() -> float:
    """Memory of this process, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def seconds(action: Callable[[], object]) -> float:
    """Duration of a call."""
    begin = perf_counter()
    action()
    return perf_counter() - begin


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rollouts", type=int, default=1_000_000)
    parser.add_argument("--per-step", type=int, default=1_000)
    parser.add_argument("--drawn", type=int, default=100)
    args = parser.parse_args()
    response = Response((7,) * LENGTH, (-0.125,) * LENGTH, text="7" * LENGTH)
    rollout = Rollout((("What is it?", response),), reward=1.0)
    stored = StoredRollout("task", "", rollout, ((-0.125,) * LENGTH,), ((0.5,) * LENGTH,))
    with tempfile.TemporaryDirectory() as folder:
        buffer = ReplayBuffer(args.rollouts, SegmentFiles(Path(folder)))
        before = resident_mib()
        priority = torch.rand(args.per_step, dtype=torch.float64)
        lines = buffer.to_lines([stored]) * args.per_step
        steps = args.rollouts // args.per_step
        filling = seconds(lambda: [buffer.append(step, lines, priority) for step in range(steps)])
        serialising = seconds(lambda: buffer.to_lines([stored] * args.per_step))
        drawn = without_replacement(buffer.priority, args.drawn, Random(0))
        drawing = seconds(lambda: without_replacement(buffer.priority, args.drawn, Random(1)))
        reading = seconds(lambda: [buffer.read(i) for i in drawn])
        appending = seconds(lambda: buffer.append(steps, lines, priority))
        tensors = sum(x.untyped_storage().nbytes() for x in buffer.tensors().values())
        print(f"rollouts in the replay buffer      {len(buffer):,}")
        print(f"numbers in memory         {tensors / 2**20:.1f} MiB")
        print(f"growth of the process     {resident_mib() - before:.1f} MiB")
        print(f"segments                  {steps:,} files, filled in {filling:.1f} s")
        print(f"serialise a step          {serialising * 1e3:.1f} ms for {args.per_step} rollouts")
        print(f"append a step             {appending * 1e3:.1f} ms")
        print(f"draw {args.drawn:<5}               {drawing * 1e3:.1f} ms")
        print(f"read the drawn            {reading * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
