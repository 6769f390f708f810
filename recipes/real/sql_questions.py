"""GRPO on questions about real tables: a small model writes SELECT … WHERE, evaluated on others.

python recipes/real/sql_data.py .grupo/sql
grupo train recipes/real/sql_questions.py:RECIPE --model PATH

`EXECUTION` is the same run without partial credit: docs/sql.md.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from grupo import Adam, Evaluation, Recipe
from grupo.envs import RewardTerm
from grupo.envs.sql import SqlExecution, SqlQuestions
from grupo.methods.grpo import grpo
from grupo.tasks import DatasetTasks
from grupo.util.importing import load_module_file

TRAINING: Any = load_module_file(Path(__file__).with_name("training.py"))
FOLDER = ".grupo/sql"
ENV = SqlQuestions(
    FOLDER, introduction="{schema}", instructions=" Write only the SQL query, in one line."
)
RECIPE = Recipe(
    policy=TRAINING.chat_model(TRAINING.MODEL, max_new_tokens=48),
    env=ENV,
    tasks=DatasetTasks(f"{FOLDER}/train.jsonl"),
    eval_tasks=DatasetTasks(f"{FOLDER}/held_out.jsonl"),
    method=grpo(group_size=8, kl_coef=0.0),
    max_steps=24,
    prompts_per_step=8,
    learning_rate=1e-5,
    optimizer=Adam(),
    evaluation=Evaluation(attempts=2),
    save_every=24,  # a checkpoint has 1.6 GB
)
EXECUTION = RECIPE.replace(env=replace(ENV, rewards=(RewardTerm("execution", SqlExecution()),)))
