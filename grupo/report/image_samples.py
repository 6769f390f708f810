"""Samples of an image policy before and after training: image grids and a table of their scores."""

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
from grupo.rollouts.eval_result import Proportion, bootstrap_proportion
from grupo.rollouts.evaluate import HasActor, run_rollouts
from grupo.training.resume.load_run import load_policy
from grupo.training.start import run_training

NOISE_KEY = 7  # the key of the initial noise, which all policies share
MAX_SHOWN = 12  # tasks in an image grid


@dataclass(frozen=True)
class ImageSamples:
    """One group of images per task, sampled with the SDE (noisy) and with the ODE."""

    sde: Sequence[Group]
    ode: Sequence[Group]


def train_and_compare(
    recipe: Recipe, env: SingleTurn, task_source: TaskSource, run_folder: Path
) -> str:
    """Train, then compare the policy before and after with `compare_policies`."""
    run_training(recipe, run_folder)
    after, _ = load_policy(run_folder)
    return compare_policies(recipe.policy.build(), after, env, task_source.load(), run_folder)


def compare_policies(
    before: HasActor, after: HasActor, env: SingleTurn, tasks: Sequence[Task], folder: Path
) -> str:
    """Write `before.png`, `after.png` (from the same noise) and `table.md`; return the table.

    Args:
        before, after: the two policies.
        env: the environment that scores the images.
        tasks: the tasks to sample; the grids show the first `MAX_SHOWN`.
        folder: where to write.
    """
    check_component_tasks(env, tasks)
    samples = {
        "before": sample_images(before, env, tasks),
        "after": sample_images(after, env, tasks),
    }
    for name, images in samples.items():
        rows = [group.rollouts for group in images.ode[:MAX_SHOWN]]
        save_image_grid(rows, folder / f"{name}.png")
    table = comparison_table(env, samples["before"], samples["after"])
    (folder / "table.md").write_text(table)
    return table


def sample_images(
    policy: HasActor, env: SingleTurn, tasks: Sequence[Task], group_size: int = 8
) -> ImageSamples:
    """Sample a group of `group_size` images per task, with the SDE and with the ODE."""
    actor = policy.actor(NOISE_KEY)
    actors = (actor, actor.with_sampling(top_k=1))
    return ImageSamples(*(run_rollouts(a, env, tasks, group_size) for a in actors))


def comparison_table(env: SingleTurn, before: ImageSamples, after: ImageSamples) -> str:
    """A Markdown table of reward, reward terms and diversity: means over tasks, 95 % intervals."""
    sampled = [groups for samples in (before, after) for groups in (samples.sde, samples.ode)]
    scored = [_scored_groups(groups) for groups in sampled]
    columns = [mean_scores(groups) for groups in scored]
    failed = _count_rollouts(sampled) - _count_rollouts(scored)
    untrained = {term.name for term in env.rewards if not term.weight}
    lines = ["| | before, SDE | before, ODE | after, SDE | after, ODE |", "|---|---|---|---|---|"]
    for name in columns[0]:
        cells = " | ".join(str(column[name]) for column in columns)
        lines.append(f"| {name}{', not trained' * (name in untrained)} | {cells} |")
    lines += ["", f"{failed} images could not be scored and are left out."] * bool(failed)
    return "\n".join(lines) + "\n"


def _scored_groups(groups: Sequence[Group]) -> list[Group]:
    """The groups without failed rollouts; groups without any scored rollout are dropped."""
    scored = [tuple(r for r in group.rollouts if not r.error) for group in groups]
    pairs = zip(groups, scored, strict=True)
    return [replace(group, rollouts=rollouts) for group, rollouts in pairs if rollouts]


def _count_rollouts(columns: Sequence[Sequence[Group]]) -> int:
    return sum(len(group.rollouts) for groups in columns for group in groups)


def mean_scores(groups: Sequence[Group]) -> Mapping[str, Proportion]:
    """Means over tasks: of the reward, of each term over the tasks that have it, of diversity."""
    values = {"reward": [fmean(group.rewards) for group in groups]}
    for name in dict.fromkeys(name for group in groups for name in group.rollouts[0].reward_terms):
        scored = [group.rollouts for group in groups if name in group.rollouts[0].reward_terms]
        values[name] = [fmean(r.reward_terms[name] for r in rollouts) for rollouts in scored]
    values["diversity"] = [diversity(group.rollouts) for group in groups]
    return {name: bootstrap_proportion(xs) for name, xs in values.items()}


def diversity(rollouts: Sequence[Rollout]) -> float:
    """The distance between two images (RMS over pixels in [0, 1]), averaged over all pairs."""
    flat = torch.stack([rollout_image(rollout).flatten() for rollout in rollouts])
    return (torch.pdist(flat) / flat.shape[1] ** 0.5).mean().item()
