"""The table of the stages of Tülu 3 on a toy model: `docs/pipelines_shown.md`.

Named before the first run: accuracy after SFT < after DPO < after RLVR; and RLVR needs fewer
steps to the accuracy midway between DPO and 1 with a value model that starts from the reward model.

python recipes/pipelines/tulu3_table.py FOLDER [SEEDS]
"""

import json
import sys
from pathlib import Path

import torch
from shifted_digits import save_model
from tulu3 import pipeline

from grupo.evidence.claims.paired_table import paired_table
from grupo.pipeline import resume_pipeline, run_pipeline
from grupo.rollouts.eval_scores import scores_by_step
from grupo.storage.pipeline_dirs import is_pipeline

SEEDS = 8


def curve(run: Path) -> dict[int, float]:
    """The sampled accuracy on held-out tasks by the number of steps."""
    summary = json.loads((run / "summary.json").read_text())
    by_step = scores_by_step(summary["held_out"], summary["steps"])
    return {step: scores["sampled"] for step, scores in by_step.items()}


def steps_to(accuracies: dict[int, float], goal: float) -> float:
    """The first evaluated step with an accuracy; one more than the last if none has it.

    >>> steps_to({0: 0.1, 4: 0.6, 8: 0.9}, 0.5), steps_to({0: 0.1, 8: 0.4}, 0.5)
    (4.0, 9.0)
    """
    reached = [step for step, accuracy in accuracies.items() if accuracy >= goal]
    return float(min(reached, default=max(accuracies) + 1))


def run_seed(folder: Path, seed: int) -> Path:
    """Run the pipeline of a seed, or what is not finished of it, and return its folder."""
    root = folder / f"seed{seed}"
    if is_pipeline(root / "run"):
        return resume_pipeline(root / "run")
    model = save_model(root / "model", seed)
    return run_pipeline(pipeline(str(model), seed), root / "run")


def main() -> None:
    """Run all seeds, and print the tables of the seeds that have ended after each."""
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    stages: dict[str, list[dict[str, float]]] = {}
    values: dict[str, list[dict[str, float]]] = {}
    for seed in range(int(sys.argv[2]) if len(sys.argv) > 2 else SEEDS):
        root = run_seed(folder, seed)
        curves = {name: curve(root / name) for name in ("sft", "dpo", "rlvr", "rlvr_from_policy")}
        for name in ("sft", "dpo", "rlvr"):
            accuracy = list(curves[name].values())[-1]
            stages.setdefault(name, []).append({"accuracy": accuracy})
        goal = (1 + list(curves["dpo"].values())[-1]) / 2
        for name, arm in (("rlvr_from_policy", "policy"), ("rlvr", "reward model")):
            accuracies = list(curves[name].values())
            values.setdefault(arm, []).append(
                {
                    "steps": steps_to(curves[name], goal),
                    "mean": sum(accuracies) / len(accuracies),
                    "last": accuracies[-1],
                }
            )
        if seed:
            print(f"{seed + 1} seeds", flush=True)
            print(paired_table(stages, ["accuracy"], "dpo"), flush=True)
            print(paired_table(values, ["steps", "mean", "last"], "policy"), flush=True)


if __name__ == "__main__":
    main()
