"""A small real model imitates its own votes: which of two numbers is larger. docs/answer_time.md.

grupo train recipes/real/voted_numbers.py:PIPELINE --run runs/voted_numbers
grupo train recipes/real/voted_numbers.py:PIPELINE --run runs/voted_numbers_1 --seed 1
"""

from dataclasses import replace
from pathlib import Path

from grupo.methods.sft import sft
from grupo.pipeline import CollectedTasks, CollectStage, Pipeline, Stage, answers
from grupo.rollouts.turns import Vote
from grupo.util.importing import load_module_file

TRAINING = load_module_file(Path(__file__).with_name("training.py"))
ANSWERS = load_module_file(Path(__file__).with_name("answers.py"))
RECIPE = TRAINING.family_recipe("larger_number")
BASE = RECIPE.replace(
    max_steps=4, save_every=4, evaluation=replace(RECIPE.evaluation, attempts=2, every=0)
)
PIPELINE = Pipeline(
    (
        CollectStage("voted", BASE, 1, 32, answers, strategy=Vote(4, ANSWERS.last_number)),
        Stage("sft", BASE.replace(method=sft(), tasks=CollectedTasks("voted"))),
    )
)
