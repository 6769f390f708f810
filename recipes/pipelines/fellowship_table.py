"""The tables of The Fellowship of the LLMs on small sums: `docs/pipelines_shown.md`.

Named before the first run: a jury and a debate agree with the true preference more than one judge;
the last revision beats a single draft, and the majority of as many drafts as the tokens of its
workshop pay for; DPO on either data set makes the answers of its role better.

python recipes/pipelines/fellowship_table.py [SEEDS]
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import torch
from fellowship import COPIES, PREFERENCES, REVIEWS, WORKSHOP, base_recipe, pipeline
from reviewed_sums import closer, correct, save_model, sum_tasks

from grupo.compare.table_formats import markdown
from grupo.core.types import Group, Rollout
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table, signed
from grupo.pipeline import run_pipeline
from grupo.rewards import FunctionReward
from grupo.rollouts.evaluate import HasActor, run_rollouts, sample_groups
from grupo.training.resume.load_run import load_policy
from grupo.util.rater_agreement import cohen_kappa
from grupo.util.rng import derive_key
from grupo.util.statistics import student_t_mean

SEEDS = 8
PER_WORKSHOP = 1 + 2 * WORKSHOP.rounds  # texts: a draft, then reviews and revisions
TASKS = sum_tasks() * COPIES
ENV = SingleTurn((RewardTerm("correct", FunctionReward(correct)),))


def workshops(policy: HasActor, seed: int) -> list[Group]:
    """A draft and a revision for each task."""
    return sample_groups(policy.actor(derive_key(seed, "workshop")), ENV, TASKS, WORKSHOP)


def agreement(groups: Sequence[Group]) -> dict[str, float]:
    """Kappa of each preference function with the truth, on pairs of which one answer is right."""
    pairs = [(group.task, *group.rollouts) for group in groups]
    told = [pair for pair in pairs if closer(*pair) != 0.5]
    truth = [closer(*pair) for pair in told]
    return {
        name: cohen_kappa(truth, [prefer(*pair) for pair in told])
        for name, prefer in PREFERENCES.items()
    }


def win_rates(policy: HasActor, seed: int, groups: Sequence[Group]) -> dict[str, float]:
    """Win rates of revisions over drafts; a tie counts half."""
    actor = policy.actor(derive_key(seed, "drafts"))
    drafts = run_rollouts(actor, ENV, TASKS, PER_WORKSHOP)
    single, several = [], []
    for workshop, others in zip(groups, drafts, strict=True):
        revision = workshop.rollouts[1]
        single.append(closer(workshop.task, revision, others.rollouts[0]))
        several.append(closer(workshop.task, revision, _majority(others.rollouts)))
    return {"a single draft": fmean(single), "the majority of 5 drafts": fmean(several)}


def _majority(rollouts: Sequence[Rollout]) -> Rollout:
    (text, _), *_ = Counter(rollout.text for rollout in rollouts).most_common(1)
    return next(rollout for rollout in rollouts if rollout.text == text)


def accuracies(policy: HasActor, seed: int) -> dict[str, float]:
    """Right drafts, and right revisions after one review."""
    groups = workshops(policy, seed)
    drafts, revisions = zip(*(group.rollouts for group in groups), strict=True)
    tasks = [group.task for group in groups]
    reviewed = sample_groups(policy.actor(derive_key(seed, "reviews")), ENV, TASKS, REVIEWS)
    return {
        "drafts": fmean(map(correct, tasks, drafts)),
        "revisions": fmean(map(correct, tasks, revisions)),
        "after a review": fmean(r.reward for group in reviewed for r in group.rollouts),
    }


def main() -> None:
    """Train the model, then measure and train with all seeds; print the tables."""
    torch.set_num_threads(1)
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS)
    kappas: dict[str, list[dict[str, float]]] = {name: [] for name in PREFERENCES}
    wins: dict[str, list[float]] = {}
    runs: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = str(save_model(folder))
        start = base_recipe(model, closer).policy.build()
        for seed in seeds:
            groups = workshops(start, seed)
            for judge, kappa in agreement(groups).items():
                kappas[judge].append({"kappa": kappa})
            for other, rate in win_rates(start, seed, groups).items():
                wins.setdefault(other, []).append(rate - 0.5)
            runs.setdefault("start", []).append(accuracies(start, seed))
            for arm, values in trained_arms(folder, model, seed).items():
                runs.setdefault(arm, []).append(values)
            print(seed, {arm: values[-1] for arm, values in runs.items()}, flush=True)
    print(paired_table(kappas, ["kappa"], "judge"))
    rows = [[other, signed(student_t_mean(rates))] for other, rates in wins.items()]
    print(markdown([["against", "win rate of revisions minus 1/2"], *rows]))
    print(paired_table(runs, ["drafts", "revisions", "after a review"], "start"))


def trained_arms(folder: Path, model: str, seed: int) -> Mapping[str, dict[str, float]]:
    """Accuracies after DPO on each data set, by the preference function that decided."""
    found = {}
    for name, prefer in PREFERENCES.items():
        root = run_pipeline(pipeline(model, prefer, seed), folder / f"{name}{seed}")
        for stage in ("writer", "reviewer"):
            policy, _ = load_policy(root / stage)
            found[f"{stage}, {name}"] = accuracies(policy, seed)
    return found


if __name__ == "__main__":
    main()
