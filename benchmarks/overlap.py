"""Asynchronous rollouts: the speed of a run, and its reward gain per minute.

    python -m benchmarks.overlap --steps 20 --max-staleness 0 1 2 --seeds 0 1

The quickstart's recipe with rollouts generated up to `max_staleness` steps before the update, and
the correction for it. The last two columns matter: faster steps may learn less. The quickstart's
model must exist: run `make quickstart-offline` before.
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
    """Tokens per second, seconds, mean reward of the last steps, and reward gain per minute."""
    recipe = RECIPE.replace(max_staleness=max_staleness, max_steps=steps, seed=seed, eval_tasks=0)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        train(recipe, run)
        log = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    seconds = sum(numbers["time/step"] for numbers in log)
    tokens = sum(numbers["tokens/generated"] for numbers in log)
    reward = [numbers["reward/mean"] for numbers in log]
    last = fmean(reward[-FINAL_STEPS:])
    return tokens / seconds, seconds, last, 60 * (last - reward[0]) / seconds


def main() -> None:
    """Print a row for each staleness and seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--max-staleness", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    args = parser.parse_args()
    print("| max_staleness | seed | tokens/s | seconds | final reward | reward gain per minute |")
    print("|---|---|---|---|---|---|")
    for seed in args.seeds:
        for staleness in args.max_staleness:
            speed, seconds, last, gained = measure_run(staleness, seed, args.steps)
            row = (
                staleness,
                seed,
                f"{speed:,.0f}",
                f"{seconds:.1f}",
                f"{last:.3f}",
                f"{gained:.3f}",
            )
            print(f"| {' | '.join(map(str, row))} |")


if __name__ == "__main__":
    main()
