"""Long answers in several steps: seconds of a step with and without `tokens_per_step`.

    python -m benchmarks.models size-4M
    python -m benchmarks.parts --tokens-per-step 0 128 64 --repeats 3

Lengths of answers are lognormal: most are short, and few are as long as the limit. Settings
alternate, and all generate one step ahead of the updates. Processor seconds are those of the
process, which other programs disturb less.
"""

import argparse
import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean

from benchmarks.grupo_worker import recipe
from benchmarks.workloads import WORKLOADS
from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, run_rollout, score_group
from grupo.core.numbers import PositiveInt
from grupo.core.types import Group, Task
from grupo.training.learner import Learner

LIMIT = 512  # tokens of an answer
MEAN, SIGMA = 96, 1.0  # of the lognormal distribution of lengths
WARMUP = 2  # steps that are not counted, beside those in which the first groups end


@component
class LognormalLengths:
    """Independent rollouts, each of which ends after a random number of tokens.

    Args:
        group_size: Rollouts in a group.
    """

    group_size: PositiveInt = 8

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        forked = [actor.fork(i) for i in range(self.group_size)]
        limited = [a.with_stop(max_new_tokens=_length(a)) for a in forked]
        rollouts = await asyncio.gather(*(run_rollout(task, env, a) for a in limited))
        return await score_group(task, env, rollouts)


def _length(actor: Actor) -> int:
    drawn = actor.rng("length").lognormvariate(math.log(MEAN) - SIGMA**2 / 2, SIGMA)
    return min(max(1, round(drawn)), LIMIT)


@dataclass(frozen=True)
class Step:
    """A measured step.

    Args:
        seconds: Of the step.
        processor: Processor seconds of the process.
        tokens: Tokens generated.
    """

    seconds: float
    processor: float
    tokens: float


def measure(tokens_per_step: int, steps: int) -> list[Step]:
    """Steps of a run, without the first ones."""
    later_steps = -(-LIMIT // tokens_per_step) - 1 if tokens_per_step else 0
    base = recipe(WORKLOADS["size-4M"], "float32")
    chosen = base.replace(
        policy=replace(base.policy, max_new_tokens=LIMIT),
        method=base.method.replace(sampler=LognormalLengths()),
        tokens_per_step=tokens_per_step,
        max_staleness=1 + later_steps,  # generation runs one step ahead in all settings
    )
    learner = Learner(chosen)
    measured = [_measured_step(learner) for _ in range(WARMUP + later_steps + steps)]
    learner.close()
    return measured[WARMUP + later_steps :]


def _measured_step(learner: Learner) -> Step:
    start, processor = time.perf_counter(), time.process_time()
    metrics = learner.step().metrics
    seconds = time.perf_counter() - start
    return Step(seconds, time.process_time() - processor, metrics["tokens/generated"])


def report(settings: Sequence[int], repeats: int, steps: int) -> None:
    """Measure alternately and print a table."""
    runs: dict[int, list[Step]] = {setting: [] for setting in settings}
    for _ in range(repeats):
        for setting in settings:
            runs[setting] += measure(setting, steps)
    print("| tokens_per_step | s per step | processor s | tokens | processor s per 1,000 tokens |")
    print("|---|---|---|---|---|")
    for setting, own in runs.items():
        tokens = mean(step.tokens for step in own)
        processor = mean(step.processor for step in own)
        numbers = (
            f"{mean(step.seconds for step in own):.2f} s",
            f"{processor:.2f} s",
            f"{tokens:,.0f}",
            f"{1000 * processor / tokens:.3f} s",
        )
        print(f"| {setting or 'all'} | {' | '.join(numbers)} |")


def main() -> None:
    """Measure the settings that are given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tokens-per-step", type=int, nargs="+", default=[0, 128, 64])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    options = parser.parse_args()
    report(options.tokens_per_step, options.repeats, options.steps)


if __name__ == "__main__":
    main()
