"""The table of DianJin-R1 on generated statements: `docs/pipelines_shown.md`.

Named before the first run: on statements of shapes that were not trained on, direct answers are
less accurate than reasoned ones, and those less than after GRPO.

python recipes/pipelines/dianjin_r1_table.py FOLDER [SEEDS]
"""

import sys
from pathlib import Path

import torch
from dianjin_r1 import pipeline, save_model
from tulu3_table import curve

from grupo.evidence.claims.paired_table import paired_table
from grupo.pipeline import resume_pipeline, run_pipeline
from grupo.storage.pipeline_dirs import is_pipeline

SEEDS = 8
STAGES = ("direct", "reasoned", "grpo")


def run_seed(folder: Path, seed: int) -> Path:
    """Run the pipeline of a seed, or what is not finished of it, and return its folder."""
    root = folder / f"seed{seed}"
    if is_pipeline(root / "run"):
        return resume_pipeline(root / "run")
    model = save_model(root / "model", seed)
    return run_pipeline(pipeline(str(model), seed), root / "run")


def main() -> None:
    """Run all seeds and print the table."""
    torch.set_num_threads(1)
    runs: dict[str, list[dict[str, float]]] = {stage: [] for stage in STAGES}
    for seed in range(int(sys.argv[2]) if len(sys.argv) > 2 else SEEDS):
        root = run_seed(Path(sys.argv[1]), seed)
        for stage in STAGES:
            runs[stage].append({"accuracy": max(curve(root / stage).items())[1]})
        print(seed, [runs[stage][-1] for stage in STAGES], flush=True)
    print(paired_table(runs, ["accuracy"], "reasoned"))


if __name__ == "__main__":
    main()
