"""Do both libraries do the same work? TRL samples, and both make a gradient of what it sampled.

    python -m benchmarks.check short long --precision float32

Each judges, credits, weighs and differentiates by itself; only the tokens are handed over. In
float32 the gradients agree to 1e-4 of their norm, or the program fails.
"""

import argparse
import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.compare import HERE
from benchmarks.ours import recipe
from benchmarks.workloads import WORKLOADS
from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, score_group
from grupo.core.types import Action, Group, Rollout, Task
from grupo.recipe import Recipe
from grupo.training.learner import Learner

GRADIENT_TOLERANCE = 1e-4
Tokens = list[int]
TokenRow = tuple[Tokens, Tokens, Tokens]  # read; what came then; 1 where that is the policy's


@component
class ReplaySampler:
    """A sampler that has `rollouts` played already, `n` for each task, whose keys count."""

    rollouts: tuple[Rollout, ...]
    group_size: int

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        first = int(task.key) * self.group_size
        return await score_group(task, env, self.rollouts[first : first + self.group_size])


class GradientKeepingSGD(torch.optim.SGD):
    """Keeps the gradient, and changes nothing."""

    def step(self, closure: Any = None) -> None:
        self.gradients = [p.grad.clone() for p in self.param_groups[0]["params"]]


@component
class GradientKeepingOptimizer:
    """Makes optimizers that keep the gradient."""

    def __call__(self, parameters: Sequence[torch.nn.Parameter]) -> GradientKeepingSGD:
        return GradientKeepingSGD(parameters)


def grupo_gradient(name: str, precision: str, token_rows: Sequence[TokenRow]) -> dict[str, Tensor]:
    """What grupo makes of what was said."""
    plan = replay_recipe(
        recipe(WORKLOADS[name], precision), [_rollout_from_tokens(*row) for row in token_rows]
    )
    return rollouts_and_gradient(gradient_learner(plan))[1]


def replay_recipe(recipe: Recipe, rollouts: Sequence[Rollout]) -> Recipe:
    """The same, of rollouts that have been played, group after group."""
    return recipe.replace(
        method=recipe.method.replace(sampler=ReplaySampler(tuple(rollouts), recipe.group_size))
    )


def gradient_learner(recipe: Recipe) -> Learner:
    """Whoever learns by it, but for the last: the gradient is kept, whole, and changes nothing."""
    return Learner(recipe.replace(optimizer=GradientKeepingOptimizer(), max_grad_norm=math.inf))


def rollouts_and_gradient(learner: Learner) -> tuple[Sequence[Rollout], dict[str, Tensor]]:
    """A step's rollouts, and the gradient that it kept."""
    names = {id(p): name for name, p in learner.policy.module.named_parameters()}
    groups = learner.step().collected.kept_groups
    optimizer = learner.state.optimizers["optimizer"]
    pairs = zip(optimizer.param_groups[0]["params"], optimizer.gradients, strict=True)
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    return rollouts, {names[id(p)]: kept for p, kept in pairs}


def _rollout_from_tokens(read: Tokens, said: Tokens, own: Tokens) -> Rollout:
    """Turns: what the world said up to the policy's words, and those."""
    runs = [
        (mine, [t for t, _ in run])
        for mine, run in groupby(zip(said, own, strict=True), lambda x: x[1])
    ]
    heard = [tuple(read), *(tuple(run) for mine, run in runs if not mine)]
    answers = [tuple(run) for mine, run in runs if mine]
    old = ((0.0,) * len(answer) for answer in answers)  # a first step measures it again
    return Rollout(tuple(("", Action(*turn)) for turn in zip(answers, old, heard, strict=True)))


def gradient_distance(
    ours: Mapping[str, Tensor], reference: Mapping[str, Tensor]
) -> tuple[float, float]:
    """How far apart, by the norm of the whole; the same of the worst of the tensors."""
    assert ours.keys() == reference.keys(), "they train the same parameters"
    off = {name: (ours[name] - reference[name]).double().norm() for name in ours}
    norm = {name: reference[name].double().norm() for name in ours}
    whole = math.hypot(*off.values()) / math.hypot(*norm.values())
    return whole, max(float(off[name] / norm[name]) for name in ours)


def compare_gradients(name: str, precision: str, python: Path) -> bool:
    """Print how far apart the gradients are; are they close?"""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/step.pt"
        command = [python, "-m", "benchmarks.check_peer", name, precision, file]
        subprocess.run(command, check=True, cwd=HERE.parent, stderr=subprocess.DEVNULL)
        step = torch.load(file, weights_only=True)
    whole, worst = gradient_distance(
        grupo_gradient(name, precision, step["token_rows"]), step["gradient"]
    )
    print(f"{name}, {precision}: {whole:.1e} of the norm, {worst:.1e} in the worst tensor")
    return worst < GRADIENT_TOLERANCE or precision != "float32"


def main() -> int:
    """Check every workload that was named; how many fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=WORKLOADS, metavar="NAME")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--trl", type=Path, default=HERE / ".trl")
    args = parser.parse_args()
    subprocess.run([sys.executable, "-m", "benchmarks.models", *args.names], check=True)
    python = args.trl / "bin" / "python"
    return sum(not compare_gradients(name, args.precision, python) for name in args.names)


if __name__ == "__main__":
    sys.exit(main())
