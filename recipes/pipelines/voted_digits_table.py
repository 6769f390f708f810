"""The table of distilled votes on a toy model: `docs/pipelines_shown.md`.

Named before the first run: imitating the votes is more accurate than the policy that voted, and
than imitating single answers to the same tasks; preferring the answer of a vote is more accurate
than the policy that voted.

python recipes/pipelines/voted_digits_table.py FOLDER [SEEDS]

Seeds whose runs in FOLDER are finished are not repeated.
"""

import json
import sys
from pathlib import Path

import torch
from light_r1_table import last_accuracy
from shifted_digits import save_model
from voted_digits import VOTE, pipeline

from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.tiny_lm import mean_terms
from grupo.pipeline import resume_pipeline, run_pipeline
from grupo.storage.pipeline_dirs import is_pipeline
from grupo.tasks import split_tasks
from grupo.training.resume.load_run import load_policy

SEEDS = 8
STAGES = ("sft", "imitates_votes", "imitates_singles", "prefers_votes")


def run_seed(folder: Path, seed: int) -> Path:
    """Run the pipeline of a seed, or what is not finished of it, and return its folder."""
    root = folder / f"seed{seed}"
    if is_pipeline(root / "run"):
        return resume_pipeline(root / "run")
    model = save_model(root / "model", seed)
    return run_pipeline(pipeline(str(model), seed), root / "run")


def vote_accuracy(root: Path, seed: int) -> float:
    """The accuracy of the vote itself on the held-out tasks, with the policy that voted."""
    policy, recipe = load_policy(root / "sft")
    _, tasks = split_tasks(recipe.tasks, recipe.eval_tasks, recipe.seed)
    terms = mean_terms(policy, recipe.env, tasks, attempts=1, seed=seed, turn_strategy=VOTE)
    return terms["correct"]


def main() -> None:
    """Run all seeds, and print the table and the ledgers of the first seed's collections."""
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    runs: dict[str, list[dict[str, float]]] = {}
    for seed in range(int(sys.argv[2]) if sys.argv[2:] else SEEDS):
        root = run_seed(folder, seed)
        for name in STAGES:
            runs.setdefault(name, []).append({"accuracy": last_accuracy(root / name)})
        runs.setdefault("the vote of 16", []).append({"accuracy": vote_accuracy(root, seed)})
        print(seed, {name: values[-1] for name, values in runs.items()}, flush=True)
    print(paired_table(runs, ["accuracy"], "sft"))
    print(paired_table(runs, ["accuracy"], "imitates_singles"))
    for name in ("votes", "singles", "pairs"):
        summary = json.loads((folder / "seed0" / "run" / name / "summary.json").read_text())
        counts = {key: summary[key] for key in ("rows", "tokens", "read_tokens", "usage")}
        print(name, counts)


if __name__ == "__main__":
    main()
