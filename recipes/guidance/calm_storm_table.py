"""The table of CALM and STORM on production plans: `docs/guidance_shown/calm_storm.md`.

GRPO alone, and the upper bound, which is trained on perfect programs before GRPO, generate as many
tokens in training as CALM and GRPO together, those of all corrections counted.

Named before the first run of all seeds: `correct` on held-out plans, CALM then GRPO minus GRPO
alone, by the exact sequential sign-flip test with looks at 8, 12 and 16 pairs.

python recipes/guidance/calm_storm_table.py FOLDER [FIRST_SEED END]

Runs in FOLDER are not repeated, so that two processes can share the seeds: the last call prints.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import torch
from calm_storm import ENV, base_recipe, pipeline, save_beginner, supervised
from short_programs import ShortPlans

from grupo.compare.sequential_design import SequentialDesign
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.tiny_lm import mean_terms, trained
from grupo.pipeline import resume_pipeline, run_pipeline
from grupo.recipe import EarlyStopping
from grupo.rollouts.evaluate import HasActor
from grupo.rollouts.samplers.corrective_hints import HINT_SHARE
from grupo.storage.pipeline_dirs import is_pipeline
from grupo.training.learner import Learner
from grupo.training.resume.load_run import load_policy

SEEDS = 8
DESIGN = SequentialDesign(max_pairs=16, looks=(8, 12, 16))
HELD_OUT = ShortPlans(100, seed=2000)
METRICS = ("correct", "by_hand", "wrong", "hints", "length", "tokens")


def measured(policy: HasActor, seed: int, tokens: float = 0.0) -> Metrics:
    """Means over 8 answers to each held-out plan, and the tokens generated in training."""
    means = mean_terms(policy, ENV, HELD_OUT.load(), attempts=8, seed=seed)
    flaws = {name: means[f"correct/{name}"] for name in ("by_hand", "wrong", "hints")}
    return {"correct": means["correct"], **flaws, "length": means["length"], "tokens": tokens}


class Plans:
    """The arms of the table in a folder, by seed.

    Args:
        folder: The folder, which has the beginner and the pipelines.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = folder / "beginner" / "model"
        if not self.model.exists():
            save_beginner(folder / "beginner")

    def root(self, seed: int) -> Path:
        """The folder of the pipeline of a seed, all of whose stages have ended."""
        root = self.folder / f"seed{seed}"
        if is_pipeline(root):
            return resume_pipeline(root)
        return run_pipeline(pipeline(str(self.model), seed), root)

    def tokens(self, seed: int, *stages: str) -> float:
        """Tokens that some stages of the pipeline of a seed have generated."""
        summaries = (self.root(seed) / stage / "summary.json" for stage in stages)
        return float(sum(json.loads(file.read_text())["tokens"] for file in summaries))

    def hint_share(self, seed: int) -> float:
        """Share of hint tokens in the corrected answers of a seed, on average."""
        lines = (self.root(seed) / "corrected" / "tasks.jsonl").read_text().splitlines()
        return fmean(json.loads(line)[HINT_SHARE] for line in lines)

    def beginner(self, seed: int) -> Metrics:
        """The policy that all arms start from."""
        return measured(base_recipe(str(self.model)).policy.build(), seed)

    def calm(self, seed: int) -> Metrics:
        """The policy after supervised training on corrected answers."""
        policy, _ = load_policy(self.root(seed) / "calm")
        return measured(policy, seed, self.tokens(seed, "corrected"))

    def storm(self, seed: int) -> Metrics:
        """The policy after GRPO from there."""
        policy, _ = load_policy(self.root(seed) / "storm")
        return measured(policy, seed, self.tokens(seed, "corrected", "storm"))

    def grpo(self, seed: int, model: Path | None = None) -> Metrics:
        """GRPO from a model, by default the beginner, for the tokens of the pipeline."""
        limit = EarlyStopping(max_tokens=int(self.tokens(seed, "corrected", "storm")))
        recipe = base_recipe(str(model or self.model), seed).replace(early_stopping=limit)
        learner = Learner(recipe)
        while learner.state.generated_tokens < limit.max_tokens:
            learner.step()
        return measured(learner.policy, seed, float(learner.state.generated_tokens))

    def perfect_programs(self, seed: int) -> Metrics:
        """Supervised training on right programs, and GRPO from there."""
        model = self.folder / f"taught{seed}"
        recipe = supervised(base_recipe(str(self.model), seed), "solution")
        trained(recipe).policy.export(model)
        return self.grpo(seed, model)


def main(folder: Path, seeds: Sequence[int]) -> None:
    """Train what is missing in the folder and print the tables."""
    torch.set_num_threads(1)
    plans = Plans(folder)
    arms = {
        "beginner": plans.beginner,
        "GRPO": plans.grpo,
        "CALM": plans.calm,
        "CALM, GRPO": plans.storm,
        "perfect programs, GRPO": plans.perfect_programs,
    }
    runs = stored_runs(folder / "runs.jsonl", arms, seeds)
    print("share of hint tokens:", [round(plans.hint_share(seed), 4) for seed in seeds])
    if len(seeds) > 1:
        print(paired_table(runs, METRICS, "GRPO"))
        tested = {name: runs[name] for name in ("GRPO", "CALM, GRPO")}
        print(sequential_table(tested, "correct", "GRPO", DESIGN))


if __name__ == "__main__":
    bounds = [int(text) for text in sys.argv[2:4]] or [0, SEEDS]
    main(Path(sys.argv[1]), range(*bounds))
