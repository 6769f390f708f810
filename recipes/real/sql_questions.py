"""A small model learns SELECT … WHERE on real tables, and is evaluated on others: docs/sql.md.

python recipes/real/sql_data.py .grupo/sql
grupo train recipes/real/sql_questions.py:SFT_THEN_GRPO

`RECIPE` is GRPO alone, `EXECUTION` the same without partial credit.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from grupo import Adam, Evaluation, Recipe
from grupo.core.component import component
from grupo.core.interfaces import initial_observation
from grupo.core.types import Task
from grupo.envs import RewardTerm
from grupo.envs.sql import SqlExecution, SqlQuestions
from grupo.methods.grpo import grpo
from grupo.methods.sft import sft
from grupo.pipeline import Pipeline, Stage
from grupo.tasks import DatasetTasks, TaskSource
from grupo.util.event_loop import run_coroutine
from grupo.util.importing import load_module_file

TRAINING: Any = load_module_file(Path(__file__).with_name("training.py"))
FOLDER = ".grupo/sql"
DEMONSTRATIONS = 400  # tasks of which the policy sees the reference query
HELD_OUT = 50  # tasks of held_out.jsonl
ENV = SqlQuestions(
    FOLDER, introduction="{schema}", instructions=" Write only the SQL query, in one line."
)


@component
class Demonstrations:
    """The first tasks with the prompt of the environment, and the reference query as completion.

    Args:
        tasks: The tasks.
        env: The environment.
        count: Number of tasks.
    """

    tasks: TaskSource
    env: SqlQuestions
    count: int

    def load(self) -> Sequence[Task]:
        tasks = self.tasks.load()
        return [self._demonstration(tasks[index]) for index in range(self.count)]

    def _demonstration(self, task: Task) -> Task:
        prompt = run_coroutine(initial_observation(task, self.env))
        return replace(
            task, prompt=prompt, columns={**task.columns, "completion": task.reference_answer}
        )


RECIPE = Recipe(
    policy=TRAINING.chat_model(TRAINING.MODEL, max_new_tokens=40),
    env=ENV,
    tasks=DatasetTasks(f"{FOLDER}/train.jsonl"),
    eval_tasks=DatasetTasks(f"{FOLDER}/held_out.jsonl"),
    method=grpo(group_size=8, kl_coef=0.0),
    max_steps=12,
    prompts_per_step=4,
    learning_rate=1e-5,
    optimizer=Adam(),
    evaluation=Evaluation(attempts=1),
    save_every=12,  # a checkpoint has 1.6 GB
)
EXECUTION = RECIPE.replace(env=replace(ENV, rewards=(RewardTerm("execution", SqlExecution()),)))
SFT = RECIPE.replace(
    env=replace(ENV, introduction="", instructions=""),  # demonstrations have the whole prompt
    tasks=Demonstrations(RECIPE.tasks, ENV, DEMONSTRATIONS),
    eval_tasks=Demonstrations(RECIPE.eval_tasks, ENV, HELD_OUT),
    method=sft(),
    prompts_per_step=8,
)
SFT_THEN_GRPO = Pipeline((Stage("sft", SFT), Stage("grpo", RECIPE)))
