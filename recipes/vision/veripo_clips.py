"""VerIPO on clips of moving shapes: GRPO, pairs by a verifier, DPO, GRPO. arXiv:2505.19000.

The loop is `grupo.pipeline.verified_loop`; `recipes/pipelines/veripo.py` runs it on texts. The
table of this script has not been made yet.

Named before the first run of all seeds: after as much processor time, the share of held-out answers
that their thoughts contradict, of VerIPO minus that of GRPO alone, which goes on from the same
first stage with the learning rate of the second; the claim is that it is below 0.

grupo train recipes/vision/veripo_clips.py:PIPELINE --run runs/veripo
python recipes/vision/veripo_clips.py FOLDER [FIRST_SEED END]
"""

import json
import shutil
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import process_time

import torch
from order_clips import TAGS, WAIT, OrderExamples, conclusion

from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.consistency import answer_consistency
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.tiny_lm import mean_terms
from grupo.evidence.claims.vision_arms import vision_policy
from grupo.methods.dpo import dpo
from grupo.methods.grpo import grpo
from grupo.pipeline import Pipeline, VerifiedPairs, run_pipeline, verified_loop
from grupo.recipe import Evaluation, Recipe
from grupo.rewards import (
    ConclusionMatch,
    EnoughWords,
    ExactMatch,
    InsideTag,
    TagFormat,
    VariedThoughts,
)
from grupo.rollouts.evaluate import HasActor, SuccessCriterion
from grupo.tasks.clips import ClipOrder
from grupo.toy.vision_lm import ToyVisionLM, ensure_trained_vision
from grupo.training.learner import Learner
from grupo.training.resume.load_run import load_policy

SEEDS = 8
LEARNING_RATE = 1e-3
ANSWER = InsideTag("answer")
GENERATING = ("search", "pairs", "rates", "search_again")  # stages
HELD_OUT = ClipOrder(100, seed=900_000_000)
BLIND = ClipOrder(100, seed=900_000_000, blind=True)
MODEL = ToyVisionLM(OrderExamples(), tags=TAGS, tower_layers=2, text_layers=3, max_steps=1200)
POLICY = vision_policy(MODEL, max_new_tokens=56)
VERIFIER = VerifiedPairs(("consistent", "varied", "enough"), reflection=WAIT)


CORRECT, CONSISTENT = ExactMatch(ANSWER), ConclusionMatch(conclusion, ANSWER)
ENV = SingleTurn(
    (
        RewardTerm("accuracy", CORRECT),
        RewardTerm("format", TagFormat(), 0.5),
        RewardTerm("consistent", CONSISTENT, 0.0),
        RewardTerm("varied", VariedThoughts(largest_share=0.4), 0.0),
        RewardTerm("enough", EnoughWords(6), 0.0),
    )
)


def search_recipe(seed: int = 0) -> Recipe:
    """GRPO on accuracy and format, which is the first stage.

    Args:
        seed: Seed of the run.
    """
    return Recipe(
        policy=POLICY,
        env=ENV,
        tasks=ClipOrder(240, seed=500_000_000),
        eval_tasks=0,
        method=grpo(group_size=8, kl_coef=0.0),
        max_steps=30,
        prompts_per_step=8,
        learning_rate=LEARNING_RATE,
        save_every=1000,
        evaluation=Evaluation(every=0, success=SuccessCriterion("accuracy")),
        seed=seed,
    )


def pipeline(seed: int = 0) -> Pipeline:
    """The loop: pairs from 8 rollouts of each task, 20 steps of DPO with 32 pairs, GRPO again.

    Args:
        seed: Seed of all stages.
    """
    search = search_recipe(seed)
    again = search.replace(learning_rate=LEARNING_RATE / 2)
    align = again.replace(method=dpo(beta=0.1), max_steps=20, prompts_per_step=32)
    return verified_loop(search, align, again, VERIFIER)


PIPELINE = pipeline()


def measured(policy: HasActor, seed: int, seconds: float = 0.0, tokens: float = 0.0) -> Metrics:
    """`answer_consistency` on held-out questions, blind accuracy, and the cost of training."""
    shares = answer_consistency(policy, ENV, HELD_OUT.load(), attempts=4, seed=seed)
    return {
        **shares,
        "blind": mean_terms(policy, ENV, BLIND.load(), attempts=2, seed=seed)["accuracy"],
        "seconds": seconds,
        "tokens": tokens,
    }


@dataclass(frozen=True)
class OrderArms:
    """The arms of the table, by seed.

    Args:
        folder: Holds the pipelines.
    """

    folder: Path

    def beginner(self, seed: int) -> Metrics:
        """The model before RL."""
        return measured(POLICY.build(), seed)

    def stage(self, name: str, seed: int) -> Metrics:
        """The policy after a stage of the pipeline; cost is that of the whole pipeline."""
        cost = self.cost(seed)
        policy, _ = load_policy(self.root(seed) / name)
        return measured(policy, seed, **cost)

    def grpo_alone(self, seed: int) -> Metrics:
        """GRPO with half the learning rate from the end of the first stage, for the same time."""
        budget, start = self.cost(seed)["seconds"], process_time()
        learner = Learner(search_recipe(seed))
        tokens = sum(learner.step().metrics["tokens/generated"] for _ in range(30))
        learner.policy.export(self.folder / f"start{seed}")
        policy = replace(POLICY, model=str(self.folder / f"start{seed}"))
        recipe = search_recipe(seed).replace(policy=policy, learning_rate=LEARNING_RATE / 2)
        learner = Learner(recipe.replace(max_steps=1000))
        while process_time() - start < budget:
            tokens += learner.step().metrics["tokens/generated"]
        return measured(learner.policy, seed, process_time() - start, tokens)

    def cost(self, seed: int) -> dict[str, float]:
        """Processor seconds and generated tokens of the pipeline, which is run if it is missing."""
        file = self.folder / f"cost{seed}.json"
        if not file.exists():
            shutil.rmtree(self.root(seed), ignore_errors=True)
            start = process_time()
            run_pipeline(pipeline(seed), self.root(seed))
            summaries = (self.root(seed) / stage / "summary.json" for stage in GENERATING)
            tokens = sum(json.loads(summary.read_text())["tokens"] for summary in summaries)
            file.write_text(json.dumps({"seconds": process_time() - start, "tokens": tokens}))
        return json.loads(file.read_text())

    def root(self, seed: int) -> Path:
        """The folder of the pipeline of a seed."""
        return self.folder / f"seed{seed}"


def main(folder: Path, first_seed: int = 0, end: int = SEEDS) -> None:
    """Train each arm with each seed and print the table."""
    torch.set_num_threads(1)
    ensure_trained_vision(MODEL)
    folder.mkdir(parents=True, exist_ok=True)
    clips = OrderArms(folder)
    arms = {
        "beginner": clips.beginner,
        "GRPO, first stage": partial(clips.stage, "search"),
        "GRPO alone": clips.grpo_alone,
        "after DPO": partial(clips.stage, "align"),
        "VerIPO": partial(clips.stage, "search_again"),
    }
    runs = stored_runs(folder / "runs.jsonl", arms, range(first_seed, end))
    print(paired_table(runs, ["inconsistent", "accuracy", "sound", "blind"], "GRPO alone"))
    print(paired_table(runs, ["length", "seconds", "tokens"], "GRPO alone"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
