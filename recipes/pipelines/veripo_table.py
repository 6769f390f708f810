"""The table of VerIPO on clips in words: `docs/pipelines_shown.md`.

Named before the first run of all seeds: after as many generated tokens, a smaller share of VerIPO's
answers is contradicted by their thoughts than of those of GRPO alone, which goes on from the same
first stage with the learning rate of the second.

python recipes/pipelines/veripo_table.py FOLDER [FIRST_SEED END]

Runs in FOLDER are not repeated, so that two processes can share the seeds: the last call prints.
"""

import json
import sys
from functools import partial
from pathlib import Path

import torch
from clips import held_out_tasks
from veripo import LEARNING_RATE, REWARDS, base_recipe, pipeline, save_model

from grupo.envs import SingleTurn
from grupo.evidence.claims.consistency import answer_consistency
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.pipeline import resume_pipeline, run_pipeline
from grupo.rollouts.evaluate import HasActor
from grupo.storage.pipeline_dirs import is_pipeline
from grupo.training.learner import Learner
from grupo.training.resume.load_run import load_policy

SEEDS = 8
METRICS = ("inconsistent", "accuracy", "sound", "length", "tokens")
GENERATING = ("search", "pairs", "rates", "search_again")  # stages


def measured(policy: HasActor, seed: int, tokens: float = 0.0) -> Metrics:
    """`answer_consistency` on held-out questions, and the tokens generated in training."""
    shares = answer_consistency(
        policy, SingleTurn(REWARDS), list(held_out_tasks()), attempts=8, seed=seed
    )
    return {
        **shares,
        "tokens": tokens,
    }


class Clips:
    """The arms of the table in a folder, by seed.

    Args:
        folder: The folder, which has the model after supervised training and the pipelines.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = folder / "model" / "model"
        if not self.model.exists():
            save_model(folder / "model")

    def root(self, seed: int) -> Path:
        """The folder of the pipeline of a seed, all of whose stages have ended."""
        root = self.folder / f"seed{seed}"
        if is_pipeline(root):
            return resume_pipeline(root)
        return run_pipeline(pipeline(str(self.model), seed), root)

    def tokens(self, seed: int, last: str) -> float:
        """Tokens that the stages of a pipeline generate until one of them has ended."""
        stages = GENERATING[: GENERATING.index(last) + 1]
        summaries = (self.root(seed) / stage / "summary.json" for stage in stages)
        return float(sum(json.loads(file.read_text())["tokens"] for file in summaries))

    def start(self, seed: int) -> Metrics:
        """The model after supervised training."""
        return measured(base_recipe(str(self.model)).policy.build(), seed)

    def stage(self, name: str, last: str, seed: int) -> Metrics:
        """The policy after a stage, with the tokens until `last`."""
        policy, _ = load_policy(self.root(seed) / name)
        return measured(policy, seed, self.tokens(seed, last))

    def grpo_alone(self, seed: int) -> Metrics:
        """GRPO from the first stage on, until it has generated as many tokens as the pipeline."""
        policy, _ = load_policy(self.root(seed) / "search")
        start = self.folder / f"start{seed}"
        policy.export(start)
        recipe = base_recipe(str(start), seed)
        learner = Learner(recipe.replace(learning_rate=LEARNING_RATE / 2, max_steps=1000))
        tokens, budget = self.tokens(seed, "search"), self.tokens(seed, "search_again")
        while tokens < budget:
            tokens += learner.step().metrics["tokens/generated"]
        return measured(learner.policy, seed, tokens)


def main() -> None:
    """Run some seeds, all by default, and print the table of these."""
    torch.set_num_threads(1)
    clips = Clips(Path(sys.argv[1]))
    first, end = map(int, sys.argv[2:]) if sys.argv[2:] else (0, SEEDS)
    arms = {
        "start": clips.start,
        "GRPO, first stage": partial(clips.stage, "search", "search"),
        "GRPO alone": clips.grpo_alone,
        "after DPO": partial(clips.stage, "align", "pairs"),
        "VerIPO": partial(clips.stage, "search_again", "search_again"),
    }
    runs = stored_runs(clips.folder / "runs.jsonl", arms, range(first, end))
    if end - first > 1:
        print(paired_table(runs, METRICS, "GRPO alone"))


if __name__ == "__main__":
    main()
