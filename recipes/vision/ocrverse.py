"""OCRVerse: each domain of transcriptions is scored by its own reward.

Zhong et al., 2026, arXiv:2601.21639. Pictures of tables are transcribed into HTML and charts into
SVG; a chart has several correct transcriptions.

Named before the first run of all seeds: the smaller gain over the beginner of the two domains, each
measured by its own reward, is larger with a reward for each domain than with edit similarity for
both.

grupo train recipes/vision/ocrverse.py:RECIPE
python recipes/vision/ocrverse.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Callable
from pathlib import Path

import torch

from grupo.core.paper import Paper, Source
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import Runs, paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.tiny_lm import trained
from grupo.evidence.claims.vision_arms import means_by_part, vision_policy, vision_recipe
from grupo.methods.grpo import grpo
from grupo.recipe import Recipe
from grupo.rewards import (
    ByColumn,
    EditSimilarity,
    RenderSimilarity,
    Reward,
    Route,
    SvgRenderer,
    TableSimilarity,
)
from grupo.rollouts.evaluate import HasActor
from grupo.tasks.document_crops import DocumentCrops
from grupo.tasks.scenes import IMAGE_SIZE
from grupo.toy.document_examples import DocumentExamples
from grupo.toy.vision_lm import ToyVisionLM, ensure_trained_vision

PAPER = Paper(
    title="OCRVerse: Towards Holistic OCR in End-to-End Vision-Language Models",
    use="Pictures of several domains are transcribed into text, LaTeX, HTML and code.",
    kind="reward",
    tags=("multimodal", "reward", "sft"),
    catalogue=("ocrverse",),
    source=Source(
        "abstract", "the abstract and reviews of it; no code of the training is released"
    ),
    checked=("golden", "run"),
    missing=(
        "Similarity by an image encoder, which `RenderSimilarity(similarity=…)` takes.",
        "Web pages, circuits and molecules, whose renderers would be further functions.",
    ),
    deviations=(
        "Pictures are compared by the overlap of their ink, with a bonus of 0.1 for valid code.",
        "Two domains are trained, tables and charts; text and formulas have golden tests only.",
    ),
    shown=(
        "docs/vision_shown/ocrverse.md#results",
        "tests/rewards/test_transcriptions.py::test_equal_tables_score_one_also_without_optional_tags",
    ),
)
SEEDS = 8
STEPS = 30
DOMAINS = ("table", "chart")
MODEL = ToyVisionLM(examples=DocumentExamples(domains=DOMAINS, values_frac=0.5), max_steps=300)
MAX_NEW_TOKENS = 32
ROUTED = ByColumn(
    "domain",
    (
        Route("table", TableSimilarity()),
        Route("chart", RenderSimilarity(SvgRenderer(IMAGE_SIZE))),
    ),
)
PARTS = {
    domain: DocumentCrops(60, seed=900_000_000, domains=(domain,)).load() for domain in DOMAINS
}
BLIND = {
    domain: DocumentCrops(60, seed=900_000_000, domains=(domain,), blind=True).load()
    for domain in DOMAINS
}
SCORES = SingleTurn((RewardTerm("own", ROUTED), RewardTerm("edit", EditSimilarity(), 0.0)))


def recipe(reward: Reward = ROUTED, seed: int = 0) -> Recipe:
    """GRPO on pictures of both domains.

    Args:
        reward: Scores the transcriptions.
        seed: Seed of the run.
    """
    return vision_recipe(
        MODEL,
        SingleTurn((RewardTerm("similarity", reward),)),
        DocumentCrops(50_000, seed=500_000_000, domains=DOMAINS),
        grpo(group_size=8, kl_coef=0.0),
        steps=STEPS,
        seed=seed,
        max_new_tokens=MAX_NEW_TOKENS,
        prompts_per_step=16,
    )


def evaluate(policy: HasActor, seed: int, *, blind: bool = False) -> Metrics:
    """Each domain's own reward and edit similarity on held-out pictures."""
    parts = BLIND if blind else PARTS
    return means_by_part(policy, SCORES, parts, ("own", "edit"), attempts=2, seed=seed)


def with_gains(runs: Runs) -> Runs:
    """The runs with the smaller gain of the two domains' own rewards over the beginner."""
    keys = [f"{domain}/own" for domain in DOMAINS]
    return {
        arm: [
            {**after, "smaller gain": min(after[key] - before[key] for key in keys)}
            for before, after in zip(runs["beginner"], seeds, strict=True)
        ]
        for arm, seeds in runs.items()
    }


def beginner() -> HasActor:
    """The policy after supervised training."""
    ensure_trained_vision(MODEL)
    return vision_policy(MODEL, MAX_NEW_TOKENS).build()


def arm(reward: Reward) -> Callable[[int], Metrics]:
    """Trains with a seed and returns the metrics."""

    def run(seed: int) -> Metrics:
        ensure_trained_vision(MODEL)
        return evaluate(trained(recipe(reward, seed)).policy, seed)

    return run


def main(folder: Path, first: int = 0, end: int = SEEDS) -> None:
    """Train each arm with each seed and print the table."""
    torch.set_num_threads(1)
    arms: dict[str, Callable[[int], Metrics]] = {
        "beginner": lambda seed: evaluate(beginner(), seed),
        "beginner, blind": lambda seed: evaluate(beginner(), seed, blind=True),
        "edit similarity for both": arm(EditSimilarity()),
        "own reward for each": arm(ROUTED),
    }
    runs = with_gains(stored_runs(folder / "runs.jsonl", arms, range(first, end)))
    columns = ["table/own", "chart/own", "smaller gain", "table/edit", "chart/edit"]
    print(paired_table(runs, columns, "edit similarity for both"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
else:
    RECIPE = recipe()
