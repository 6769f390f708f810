"""What a policy draws before training and after: pictures, and a table of what they are worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import torch

from grupo.config.validate import check_admitted
from grupo.core.types import Group, Rollout, Task
from grupo.envs import SingleTurn
from grupo.recipe import Recipe, Source
from grupo.report.image_grid import grid
from grupo.rewards.image_shapes import pixels
from grupo.rollouts.evaluate import Acts, Share, play_all, share
from grupo.training.trainer import policy_of, train

KEY, SHOWN = 7, 12  # the starting noise of all drawings; tasks whose drawings are shown


@dataclass(frozen=True)
class Drawings:
    """Groups of pictures, a group for each task, with the noise of denoising steps and without."""

    sde: Sequence[Group]
    ode: Sequence[Group]


def around(recipe: Recipe, env: SingleTurn, shown: Source, run: Path) -> str:
    """Train, and `compare` what is drawn of some tasks before and after."""
    train(recipe, run)
    after, _ = policy_of(run)
    return compare(recipe.policy.build(), after, env, shown.load(), run)


def compare(before: Acts, after: Acts, env: SingleTurn, tasks: Sequence[Task], folder: Path) -> str:
    """Write `before.png` and `after.png`, drawn of the same noise, and `table.md`; return it."""
    check_admitted(env, tasks)
    one, other = draw(before, env, tasks), draw(after, env, tasks)
    for name, drawings in (("before", one), ("after", other)):
        grid([group.rollouts for group in drawings.ode[:SHOWN]], folder / f"{name}.png")
    told = table(env, one, other)
    (folder / "table.md").write_text(told)
    return told


def draw(policy: Acts, env: SingleTurn, tasks: Sequence[Task], attempts: int = 8) -> Drawings:
    """A group of `attempts` pictures of each task."""
    act = policy.act(KEY)
    return Drawings(*(play_all(a, env, tasks, attempts) for a in (act, act.at(top_k=1))))


def table(env: SingleTurn, before: Drawings, after: Drawings) -> str:
    """Reward, its parts and diversity, each a mean over tasks with its 95 % interval."""
    groups = [some for one in (before, after) for some in (one.sde, one.ode)]
    left = [_judged(some) for some in groups]
    columns, failed = [means(some) for some in left], _count(groups) - _count(left)
    untrained = {part.name for part in env.rewards if not part.weight}
    lines = ["| | before, SDE | before, ODE | after, SDE | after, ODE |", "|---|---|---|---|---|"]
    for name in columns[0]:
        said = " | ".join(str(column[name]) for column in columns)
        lines.append(f"| {name}{', not trained' * (name in untrained)} | {said} |")
    lines += ["", f"{failed} pictures could not be judged and are left out."] * bool(failed)
    return "\n".join(lines) + "\n"


def _judged(groups: Sequence[Group]) -> list[Group]:
    kept = [tuple(r for r in group.rollouts if not r.failed) for group in groups]
    return [replace(group, rollouts=some) for group, some in zip(groups, kept, strict=True) if some]


def _count(groups: Sequence[Sequence[Group]]) -> int:
    return sum(len(group.rollouts) for some in groups for group in some)


def means(groups: Sequence[Group]) -> Mapping[str, Share]:
    """Of the reward, of each of its parts over the tasks that have it, and of diversity."""
    said = {"reward": [fmean(group.rewards) for group in groups]}
    for name in dict.fromkeys(name for group in groups for name in group.rollouts[0].parts):
        of = [group.rollouts for group in groups if name in group.rollouts[0].parts]
        said[name] = [fmean(r.parts[name] for r in rollouts) for rollouts in of]
    said["diversity"] = [diversity(group.rollouts) for group in groups]
    return {name: share(values) for name, values in said.items()}


def diversity(rollouts: Sequence[Rollout]) -> float:
    """How far two pictures lie apart: root mean square over pixels, 0 to 1; mean over pairs."""
    flat = torch.stack([pixels(rollout).flatten() for rollout in rollouts])
    return (torch.pdist(flat) / flat.shape[1] ** 0.5).mean().item()
