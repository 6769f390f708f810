"""The options of TRL's examples/scripts/grpo_agent.py: a tool, fields that are set afterwards."""

import sqlite3

from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer, ModelConfig, ScriptArguments, TrlParser


def look_up(query: str) -> list[tuple]:
    """Rows of a database.

    Args:
        query: A statement of SQL.
    """
    with sqlite3.connect("file:genes.db?mode=ro", uri=True) as database:
        return database.execute(query).fetchall()


def correct(completions, answer, **columns):
    return [
        float(turns[-1]["content"] == right)
        for turns, right in zip(completions, answer, strict=True)
    ]


def with_prompt(row):
    return {"prompt": [{"role": "user", "content": row["question"]}]}


if __name__ == "__main__":
    parser = TrlParser((ScriptArguments, GRPOConfig, ModelConfig))
    script, settings, model = parser.parse_args_and_config()
    rows = load_dataset("owner/genes", split="train")
    rows = rows.filter(lambda row: row["question"].startswith("Is "))
    rows = rows.map(with_prompt, remove_columns=["question"])
    settings.chat_template_kwargs = {"enable_thinking": False}
    settings.max_completion_length = 1024
    settings.max_steps = 2 * 200
    trainer = GRPOTrainer(
        model=model.model_name_or_path,
        train_dataset=rows,
        tools=[look_up],
        reward_funcs=[correct],
        args=settings,
    )
    trainer.train()
