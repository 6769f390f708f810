"""The table of PRefLexOR on generated fact sheets: `docs/pipelines_shown.md`.

Named before the first run: answers without context become right more often after stage 1, and
again after stage 2; supervised training on the chosen answers alone is the control of stage 1.

python recipes/pipelines/preflexor_table.py [SEEDS]
"""

import sys
import tempfile
from pathlib import Path

import torch
from fact_sheets import save_model, tested_questions, write_corpus
from preflexor import base_recipe, pipeline

from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.tiny_lm import mean_terms, trained
from grupo.methods.sft import sft
from grupo.pipeline import run_pipeline
from grupo.pipeline.collect import ROWS_FILE
from grupo.rollouts.evaluate import HasActor
from grupo.tasks import DatasetTasks
from grupo.training.resume.load_run import load_policy

SEEDS = 8
TASKS = list(tested_questions())


def correct(policy: HasActor, seed: int) -> dict[str, float]:
    """The share of right answers without context."""
    terms = mean_terms(policy, base_recipe("").env, TASKS, attempts=4, seed=seed)
    return {"correct": terms["correct"]}


def main() -> None:
    """Train the model that reads, then all stages with all seeds; print the table."""
    torch.set_num_threads(1)
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS)
    runs: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, corpus = str(save_model(folder)), str(write_corpus(folder))
        start = base_recipe(model).policy.build()
        for seed in seeds:
            chosen = pipeline(model, corpus, seed)
            root = run_pipeline(chosen, folder / f"seed{seed}")
            pairs = DatasetTasks(str(root / "by_context" / ROWS_FILE))
            control = chosen.stages[1].recipe.replace(method=sft("chosen"), tasks=pairs)
            policies = {
                "start": start,
                "SFT on the chosen": trained(control).policy,
                "stage 1: ORPO": load_policy(root / "orpo")[0],
                "stage 2: EXO": load_policy(root / "exo")[0],
            }
            for arm, policy in policies.items():
                runs.setdefault(arm, []).append(correct(policy, seed))
            print(seed, {arm: values[-1] for arm, values in runs.items()}, flush=True)
    print(paired_table(runs, ["correct"], "start"))
    print(paired_table(runs, ["correct"], "stage 1: ORPO"))


if __name__ == "__main__":
    main()
