"""Check that grupo and TRL compute the same gradient from rollouts that TRL sampled.

    python -m benchmarks.check short long --precision float32

Each library computes rewards, advantages, the loss and its gradient by itself; only the tokens are
shared. The exit code is the number of workloads whose float32 gradients differ by 1e-4 or more of
the norm of a tensor.
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
from benchmarks.grupo_worker import recipe
from benchmarks.models import randomize_adapters
from benchmarks.workloads import WORKLOADS
from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, score_group
from grupo.core.types import Group, Response, Rollout, Task
from grupo.recipe import Recipe
from grupo.training.learner import Learner

GRADIENT_TOLERANCE = 1e-4
Tokens = list[int]
TokenRow = tuple[Tokens, Tokens, Tokens]  # prompt, completion, 1 where the policy generated it


@component
class ReplaySampler:
    """Returns recorded rollouts instead of sampling new ones.

    Args:
        rollouts: the recorded rollouts, group after group; the key of a task is the group's index.
        group_size: rollouts per group.
    """

    rollouts: tuple[Rollout, ...]
    group_size: int

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        first = int(task.key) * self.group_size
        return await score_group(task, env, self.rollouts[first : first + self.group_size])


class GradientKeepingSGD(torch.optim.SGD):
    """Stores the gradient instead of updating the parameters."""

    def step(self, closure: Any = None) -> None:
        self.gradients = [p.grad.clone() for p in self.param_groups[0]["params"]]


@component
class GradientKeepingOptimizer:
    """Builds a `GradientKeepingSGD`."""

    def __call__(
        self, parameters: Sequence[torch.nn.Parameter], embeddings: Sequence[torch.nn.Parameter]
    ) -> GradientKeepingSGD:
        return GradientKeepingSGD(parameters)


def grupo_gradient(name: str, precision: str, token_rows: Sequence[TokenRow]) -> dict[str, Tensor]:
    """Return grupo's gradient of the recorded tokens, by parameter name."""
    rollouts = [_rollout_from_tokens(*row) for row in token_rows]
    replay = replay_recipe(recipe(WORKLOADS[name], precision), rollouts)
    return rollouts_and_gradient(gradient_learner(replay))[1]


def replay_recipe(recipe: Recipe, rollouts: Sequence[Rollout]) -> Recipe:
    """Return the recipe with a sampler that replays the rollouts, group after group."""
    return recipe.replace(
        method=recipe.method.replace(sampler=ReplaySampler(tuple(rollouts), recipe.group_size))
    )


def gradient_learner(recipe: Recipe) -> Learner:
    """Return a learner which stores its unclipped gradient and leaves the parameters unchanged."""
    learner = Learner(recipe.replace(optimizer=GradientKeepingOptimizer(), max_grad_norm=math.inf))
    randomize_adapters(learner.policy.module)
    return learner


def rollouts_and_gradient(learner: Learner) -> tuple[Sequence[Rollout], dict[str, Tensor]]:
    """Run a step; return its rollouts and its gradient by parameter name."""
    names = {id(p): name for name, p in learner.policy.module.named_parameters()}
    groups = learner.step().collected.kept_groups
    optimizer = learner.state.optimizers["optimizer"]
    pairs = zip(optimizer.param_groups[0]["params"], optimizer.gradients, strict=True)
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    return rollouts, {names[id(parameter)]: gradient for parameter, gradient in pairs}


def _rollout_from_tokens(prompt: Tokens, completion: Tokens, from_policy: Tokens) -> Rollout:
    """Split a completion into turns: environment tokens, then the policy's answer to them."""
    observations, answers = [tuple(prompt)], []
    labelled = zip(completion, from_policy, strict=True)
    for is_answer, run in groupby(labelled, lambda pair: pair[1]):
        tokens = tuple(token for token, _ in run)
        (answers if is_answer else observations).append(tokens)
    old_logp = ((0.0,) * len(answer) for answer in answers)  # the first step recomputes it
    turns = zip(answers, old_logp, observations, strict=True)
    return Rollout(tuple(("", Response(*turn)) for turn in turns))


def gradient_distance(
    gradient: Mapping[str, Tensor], reference: Mapping[str, Tensor]
) -> tuple[float, float]:
    """Return the relative distance of the whole gradients and that of the worst tensor."""
    assert gradient.keys() == reference.keys(), "the libraries train different parameters"
    distance = {name: (gradient[name] - reference[name]).double().norm() for name in gradient}
    norm = {name: reference[name].double().norm() for name in gradient}
    whole = math.hypot(*distance.values()) / math.hypot(*norm.values())
    return whole, max(float(distance[name] / norm[name]) for name in gradient)


def compare_gradients(name: str, precision: str, python: Path) -> bool:
    """Print the distance of the gradients; return whether it is within the tolerance.

    The tolerance applies to float32 only.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/step.pt"
        command = [python, "-m", "benchmarks.trl_gradient", name, precision, file]
        subprocess.run(command, check=True, cwd=HERE.parent, stderr=subprocess.DEVNULL)
        step = torch.load(file, weights_only=True)
    gradient = grupo_gradient(name, precision, step["token_rows"])
    whole, worst = gradient_distance(gradient, step["gradient"])
    print(f"{name}, {precision}: {whole:.1e} of the norm, {worst:.1e} in the worst tensor")
    return worst < GRADIENT_TOLERANCE or precision != "float32"


def main() -> int:
    """Check the workloads of the command line; return the number of failures."""
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
