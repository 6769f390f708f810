"""The table of the stages of Light-R1 on a toy model: `docs/pipelines_shown.md`.

Named before the first run: a second supervised stage on the hardest tenth is more accurate than as
many steps on all tasks; the merge is as accurate as the best of its parts; the lengths and the
rewards of training rollouts rise together in GRPO; with the weak length reward, accuracy is that
without, and answers are shorter.

python recipes/pipelines/light_r1_table.py FOLDER [FIRST_SEED END]

Runs in FOLDER are not repeated, so that two processes can share the seeds: the last call prints.
"""

import json
import sys
from pathlib import Path
from statistics import fmean

import torch
from light_r1 import pipeline
from shifted_digits import save_model
from tulu3_table import curve

from grupo.evidence.claims.paired_table import paired_table
from grupo.pipeline import resume_pipeline, run_pipeline
from grupo.storage.pipeline_dirs import is_pipeline

SEEDS = 8
TRAINED = ("sft", "sft_more", "sft_hardest", "dpo", "nca", "grpo_no_length", "grpo")
ENDS = 5  # steps at the beginning and at the end of GRPO over which rollouts are averaged
LENGTH, REWARD, TRAINED_TOKENS = "completions/length_mean", "reward/mean", "tokens/trained"


def run_seed(folder: Path, seed: int) -> Path:
    """Run the pipeline of a seed, or what is not finished of it, and return its folder."""
    root = folder / f"seed{seed}"
    if is_pipeline(root / "run"):
        return resume_pipeline(root / "run")
    model = save_model(root / "model", seed)
    return run_pipeline(pipeline(str(model), seed), root / "run")


def metric(run: Path, name: str) -> list[float]:
    """A metric of all steps of a run."""
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [line[name] for line in map(json.loads, lines) if name in line]


def last_accuracy(run: Path) -> float:
    """The sampled accuracy on held-out tasks after the last step."""
    return list(curve(run).values())[-1]


def stage_results(root: Path) -> dict[str, dict[str, float]]:
    """Accuracy and trained tokens of each stage of a seed, and the accuracy of the merge."""
    stages = {
        name: {
            "accuracy": last_accuracy(root / name),
            "tokens": sum(metric(root / name, TRAINED_TOKENS)),
        }
        for name in TRAINED
    }
    return {**stages, "merge": {"accuracy": curve(root / "grpo")[0], "tokens": 0.0}}


def with_best_part(results: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """The results and `best part`: the most accurate checkpoint of the merge in this seed."""
    parts = [results[name] for name in ("sft_hardest", "dpo", "nca")]
    return {**results, "best part": max(parts, key=lambda part: part["accuracy"])}


def ends(run: Path) -> tuple[dict[str, float], dict[str, float]]:
    """Mean length and reward of the rollouts of the first steps, and of the last ones."""
    values = {"length": metric(run, LENGTH), "reward": metric(run, REWARD)}
    first = {name: fmean(steps[:ENDS]) for name, steps in values.items()}
    return first, {name: fmean(steps[-ENDS:]) for name, steps in values.items()}


def main() -> None:
    """Run some seeds, all by default, and print the tables of all seeds once they have ended."""
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    first, end = map(int, sys.argv[2:]) if sys.argv[2:] else (0, SEEDS)
    for seed in range(first, end):
        run_seed(folder, seed)
    roots = [folder / f"seed{seed}" / "run" for seed in range(SEEDS)]
    if not all((root / "grpo_no_length" / "summary.json").exists() for root in roots):
        return
    print_tables(roots)


def print_tables(roots: list[Path]) -> None:
    """Print the tables of finished pipelines, one of each seed."""
    results = [with_best_part(stage_results(root)) for root in roots]
    for baseline, others, metrics in (
        ("sft_more", ("sft", "sft_hardest"), ["accuracy", "tokens"]),
        (
            "merge",
            ("sft_hardest", "dpo", "nca", "best part", "grpo_no_length", "grpo"),
            ["accuracy"],
        ),
    ):
        runs = {name: [result[name] for result in results] for name in (baseline, *others)}
        print(paired_table(runs, metrics, baseline))
    last: dict[str, list[dict[str, float]]] = {}
    for name in ("grpo_no_length", "grpo"):
        pairs = [ends(root / name) for root in roots]
        runs = {"first steps": [a for a, _ in pairs], "last steps": [b for _, b in pairs]}
        print(f"{name}\n{paired_table(runs, ['length', 'reward'], 'first steps')}")
        accuracies = [result[name]["accuracy"] for result in results]
        last[name] = [{**b, "accuracy": x} for (_, b), x in zip(pairs, accuracies, strict=True)]
    print(paired_table(last, ["accuracy", "length"], "grpo_no_length"))


if __name__ == "__main__":
    main()
