"""Distilled votes: a model imitates what it answers most often, without reference answers.

A toy model adds 1 to each of three digits; 30 % of the digits that it has seen are random, so
that it samples few right answers, although they are the likeliest. Three stages start from it: it
imitates votes of 16 attempts, it imitates single answers to the same tasks, or it prefers the
answer of a vote to those that it outvotes. `docs/pipelines_shown.md` has a table.

python recipes/pipelines/voted_digits.py       # writes the untrained model
grupo train recipes/pipelines/voted_digits.py:PIPELINE --run runs/voted_digits
"""

from shifted_digits import base_recipe, save_model

from grupo.core.extract_answer import whole_text
from grupo.core.schedules import Cosine, Warmup
from grupo.methods.dpo import dpo
from grupo.methods.sft import sft
from grupo.pipeline import (
    CollectedTasks,
    CollectStage,
    Pipeline,
    Stage,
    answers,
    answers_against_rejected,
)
from grupo.rollouts.turns import Vote
from grupo.util.user_paths import models_dir

VOTE = Vote(16, whole_text)


def pipeline(model: str, seed: int = 0) -> Pipeline:
    """The stages; all but the first start from it, or from what was collected with it.

    Args:
        model: Folder of the untrained model.
        seed: Seed of all stages.
    """
    base = base_recipe(model).replace(seed=seed)
    first = base.replace(method=sft(), max_steps=60, learning_rate=Warmup(0.05, 3e-3))
    imitation = base.replace(method=sft(), max_steps=40, learning_rate=Cosine(1e-3, 1e-4))
    preferences = base.replace(method=dpo(), max_steps=20, learning_rate=1e-4)
    return Pipeline(
        (
            Stage("sft", first),
            CollectStage("votes", base, 1, rows=answers, strategy=VOTE),
            Stage("imitates_votes", imitation.replace(tasks=CollectedTasks("votes"))),
            CollectStage("singles", base, 1, rows=answers, start="sft"),
            Stage("imitates_singles", imitation.replace(tasks=CollectedTasks("singles"))),
            CollectStage(
                "pairs", base, 1, rows=answers_against_rejected, strategy=VOTE, start="sft"
            ),
            Stage("prefers_votes", preferences.replace(tasks=CollectedTasks("pairs"))),
        )
    )


MODEL = models_dir() / "shifted-digits"
PIPELINE = pipeline(str(MODEL))

if __name__ == "__main__":
    save_model(MODEL)
