"""What a policy draws before training and after: pictures, and a table of what they are worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import torch

from grupo.config.validate import check_component_tasks
from grupo.core.types import Group, Rollout, Task
from grupo.envs import SingleTurn
from grupo.recipe import Recipe, TaskSource
from grupo.report.image_grid import save_image_grid
from grupo.rewards.image_shapes import rollout_image
from grupo.rollouts.evaluate import HasActor, Proportion, bootstrap_proportion, run_rollouts
from grupo.training.trainer import load_policy, train

NOISE_KEY, MAX_SHOWN = 7, 12  # the starting noise of all drawings; tasks whose drawings are shown


@dataclass(frozen=True)
class ImageSamples:
    """Groups of pictures, a group for each task, with the noise of denoising steps and without."""

    sde: Sequence[Group]
    ode: Sequence[Group]


def train_and_compare(
    recipe: Recipe, env: SingleTurn, task_source: TaskSource, run_folder: Path
) -> str:
    """Train, and `compare` what is drawn of some tasks before and after."""
    train(recipe, run_folder)
    after, _ = load_policy(run_folder)
    return compare_policies(recipe.policy.build(), after, env, task_source.load(), run_folder)


def compare_policies(
    before: HasActor, after: HasActor, env: SingleTurn, tasks: Sequence[Task], folder: Path
) -> str:
    """Write `before.png` and `after.png`, drawn of the same noise, and `table.md`; return it."""
    check_component_tasks(env, tasks)
    one, other = sample_images(before, env, tasks), sample_images(after, env, tasks)
    for name, drawings in (("before", one), ("after", other)):
        save_image_grid(
            [group.rollouts for group in drawings.ode[:MAX_SHOWN]], folder / f"{name}.png"
        )
    told = comparison_table(env, one, other)
    (folder / "table.md").write_text(told)
    return told


def sample_images(
    policy: HasActor, env: SingleTurn, tasks: Sequence[Task], group_size: int = 8
) -> ImageSamples:
    """A group of `attempts` pictures of each task."""
    act = policy.actor(NOISE_KEY)
    return ImageSamples(
        *(run_rollouts(a, env, tasks, group_size) for a in (act, act.with_sampling(top_k=1)))
    )


def comparison_table(env: SingleTurn, before: ImageSamples, after: ImageSamples) -> str:
    """Reward, its parts and diversity, each a mean over tasks with its 95 % interval."""
    groups = [some for one in (before, after) for some in (one.sde, one.ode)]
    left = [_scored_groups(some) for some in groups]
    columns, failed = (
        [mean_scores(some) for some in left],
        _count_rollouts(groups) - _count_rollouts(left),
    )
    untrained = {part.name for part in env.rewards if not part.weight}
    lines = ["| | before, SDE | before, ODE | after, SDE | after, ODE |", "|---|---|---|---|---|"]
    for name in columns[0]:
        said = " | ".join(str(column[name]) for column in columns)
        lines.append(f"| {name}{', not trained' * (name in untrained)} | {said} |")
    lines += ["", f"{failed} pictures could not be judged and are left out."] * bool(failed)
    return "\n".join(lines) + "\n"


def _scored_groups(groups: Sequence[Group]) -> list[Group]:
    kept = [tuple(r for r in group.rollouts if not r.error) for group in groups]
    return [replace(group, rollouts=some) for group, some in zip(groups, kept, strict=True) if some]


def _count_rollouts(groups: Sequence[Sequence[Group]]) -> int:
    return sum(len(group.rollouts) for some in groups for group in some)


def mean_scores(groups: Sequence[Group]) -> Mapping[str, Proportion]:
    """Of the reward, of each of its parts over the tasks that have it, and of diversity."""
    said = {"reward": [fmean(group.rewards) for group in groups]}
    for name in dict.fromkeys(name for group in groups for name in group.rollouts[0].reward_terms):
        of = [group.rollouts for group in groups if name in group.rollouts[0].reward_terms]
        said[name] = [fmean(r.reward_terms[name] for r in rollouts) for rollouts in of]
    said["diversity"] = [diversity(group.rollouts) for group in groups]
    return {name: bootstrap_proportion(values) for name, values in said.items()}


def diversity(rollouts: Sequence[Rollout]) -> float:
    """How far two pictures lie apart: root mean square over pixels, 0 to 1; mean over pairs."""
    flat = torch.stack([rollout_image(rollout).flatten() for rollout in rollouts])
    return (torch.pdist(flat) / flat.shape[1] ** 0.5).mean().item()
