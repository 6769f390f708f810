"""The table of the stages of Light-R1 on a toy model.

Named before the first run: a second supervised stage on the hardest tenth is more accurate than as
many steps on all tasks; the merge is as accurate as the best of its parts; GRPO with a weak length
reward is as accurate as without, and its answers are shorter.

python recipes/pipelines/light_r1_table.py FOLDER [SEEDS]
"""

import json
import sys
from pathlib import Path

import torch
from light_r1 import pipeline
from shifted_digits import save_model
from tulu3_table import curve

from grupo.claims.paired_table import paired_table
from grupo.pipeline import resume_pipeline, run_pipeline
from grupo.storage.pipeline_dirs import is_pipeline

SEEDS = 8
TRAINED = ("sft", "sft_more", "sft_hardest", "dpo", "nca", "grpo_no_length", "grpo")
LAST_STEPS = 5  # whose training rollouts' lengths are averaged


def run_seed(folder: Path, seed: int) -> Path:
    """Run the pipeline of a seed, or what is not finished of it, and return its folder."""
    root = folder / f"seed{seed}"
    if is_pipeline(root / "run"):
        return resume_pipeline(root / "run")
    model = save_model(root / "model", seed)
    return run_pipeline(pipeline(str(model), seed), root / "run")


def length(run: Path) -> float:
    """Mean tokens of the rollouts of the last steps."""
    lines = (run / "metrics.jsonl").read_text().splitlines()[-LAST_STEPS:]
    return sum(json.loads(line)["length/mean"] for line in lines) / LAST_STEPS


def main() -> None:
    """Run all seeds and print the tables."""
    torch.set_num_threads(1)
    arms: dict[str, list[dict[str, float]]] = {}
    lengths: dict[str, list[dict[str, float]]] = {}
    for seed in range(int(sys.argv[2]) if len(sys.argv) > 2 else SEEDS):
        root = run_seed(Path(sys.argv[1]), seed)
        for name in TRAINED:
            arms.setdefault(name, []).append({"accuracy": list(curve(root / name).values())[-1]})
        arms.setdefault("merge", []).append({"accuracy": curve(root / "grpo")[0]})
        for name in ("grpo_no_length", "grpo"):
            lengths.setdefault(name, []).append({"length": length(root / name), **arms[name][-1]})
    for baseline, others in (
        ("sft_more", ("sft", "sft_hardest")),
        ("merge", ("sft_hardest", "dpo", "nca", "grpo")),
    ):
        shown = {name: arms[name] for name in (baseline, *others)}
        print(paired_table(shown, ["accuracy"], baseline))
    print(paired_table(lengths, ["accuracy", "length"], "grpo_no_length"))


if __name__ == "__main__":
    main()
