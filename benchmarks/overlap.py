"""Sampling ahead of the update: how much faster a run is, and how much it learns in the same time.

    python -m benchmarks.overlap --steps 20 --ahead 0 1 2 --seeds 0 1

The quickstart's recipe with rollouts sampled so many steps ahead, and corrected for it. Faster
steps that learn slower are no gain: what counts are the last two columns. The quickstart's model
has to be there: run `make quickstart` before.
"""

import argparse
import json
import tempfile
from pathlib import Path
from statistics import fmean

from grupo import train
from grupo.toy.quickstart import RECIPE

FINAL_STEPS = 5  # steps whose reward is averaged


def measure_run(max_staleness: int, seed: int, steps: int) -> tuple[float, float, float, float]:
    """Actions a second; seconds; mean reward of the last steps; what that is more, per minute."""
    chosen = RECIPE.replace(max_staleness=max_staleness, max_steps=steps, seed=seed, eval_tasks=0)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        train(chosen, run)
        every = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    seconds = sum(numbers["time/step"] for numbers in every)
    tokens = sum(numbers["tokens/generated"] for numbers in every)
    reward = [numbers["reward/mean"] for numbers in every]
    last = fmean(reward[-FINAL_STEPS:])
    return tokens / seconds, seconds, last, 60 * (last - reward[0]) / seconds


def main() -> None:
    """Print a row for each way and seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--ahead", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    args = parser.parse_args()
    print("| steps ahead | seed | actions/s | seconds | reward at the end | gained per minute |")
    print("|---|---|---|---|---|---|")
    for seed in args.seeds:
        for ahead in args.rollout_queue:
            speed, seconds, last, gained = measure_run(ahead, seed, args.steps)
            row = (ahead, seed, f"{speed:,.0f}", f"{seconds:.1f}", f"{last:.3f}", f"{gained:.3f}")
            print(f"| {' | '.join(map(str, row))} |")


if __name__ == "__main__":
    main()
