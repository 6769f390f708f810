"""Files of a new user, good ones and malformed ones."""

import json
from pathlib import Path
from typing import Any

RECIPE = """
from grupo import CausalLM, Recipe, RewardTerm, SingleTurn
from grupo.method import Method
from grupo.recipe import Evaluation
from grupo.rollouts.samplers import GroupSampler
from grupo.tasks import DatasetTasks

RECIPE = Recipe(
    policy=CausalLM("model", max_new_tokens=4),
    env=SingleTurn((RewardTerm("digits", "rewards.py:digits"),)),
    tasks=DatasetTasks("tasks.jsonl"),
    eval_tasks=4,
    method=Method(sampler=GroupSampler(2)),
    max_steps=1,
    prompts_per_step=2,
    evaluation=Evaluation(attempts=2),
)
"""
REWARDS = """
import time


def digits(task, rollout):
    return sum(map(str.isdigit, rollout.text)) / max(1, len(rollout.text))


def raises(completions, **columns):
    return [1 / 0 for text in completions]


def nan(completions, **columns):
    return [float("nan")] * len(completions)


def none(completions, **columns):
    return [None] * len(completions)


def one_number(completions, **columns):
    return [1.0]


def scalar(completions, **columns):
    return 1.0


def huge(completions, **columns):
    return [1e30] * len(completions)


def words(completions, **columns):
    return ["good"] * len(completions)


def hangs(completions, **columns):
    time.sleep(0.5)
    return [1.0] * len(completions)


def needs_solution(completions, solution, **columns):
    return [0.0] * len(completions)


def strips(completions, answer, **columns):
    return [float(a.strip() == c) for a, c in zip(answer, completions)]


def text_only(text):
    return 1.0


class Scorer:
    def __init__(self, scale):
        self.scale = scale


def tokens(task, rollout):
    return rollout.token_list
"""
METHODS = """
from grupo.algo.advantages import Center, chain
from grupo.algo.losses import Clip, EntropyBonus
from grupo.method import Method

DIVIDED = lambda: Method(loss=Clip(0.2, 0.28) / EntropyBonus(0.001))


def reads_nothing(x, batch):
    return x / batch.nothing


RAISES = Method(advantage=chain(Center(), reads_nothing))


def number():
    return 3
"""
TOOLS = """
from grupo.envs import MultiTurn
from grupo.envs.tools import Toolbox
from recipe import RECIPE


def search(query: str) -> str:
    '''Search the whole library for a text, and return the first ten pages in which it occurs.'''
    return query


RECIPE = RECIPE.replace(env=MultiTurn(Toolbox((search, search_again := search))))
"""
JUDGED = """
from grupo import RewardTerm, SingleTurn
from grupo.rewards import ChatEndpoint, Judge
from grupo.rewards.judges import YesNo
from recipe import RECIPE

server = ChatEndpoint(
    "judge", base_url="http://127.0.0.1:9/v1", api_key_env="", cache="", retries=0, time_limit=2.0
)
judge = Judge(server, prompt="{completion}", parse=YesNo("Correct:"))
RECIPE = RECIPE.replace(env=SingleTurn((RewardTerm("quality", judge),)))
"""
REWARD_TABLE = '[[env.rewards]]\nname = "digits"\nfn = "rewards.py:digits"\n'
FILES = {
    "recipe.py": RECIPE,
    "rewards.py": REWARDS,
    "methods.py": METHODS,
    "judged.py": JUDGED,
    "no_name.py": "VALUE = 3\n",
    "type.toml": f'tasks = "tasks.jsonl"\npolicy = {{model = "model", dtype = 16}}\n{REWARD_TABLE}',
    "text.toml": f'policy = "model"\ntasks = "tasks.jsonl"\n{REWARD_TABLE}',
    "function.toml": (
        'tasks = "tasks.jsonl"\npolicy = {model = "model"}\n'
        '[[env.rewards]]\nname = "digits"\nfunction = "rewards.py:digits"\n'
    ),
    "method.toml": (
        'tasks = "tasks.jsonl"\npolicy = {model = "model"}\n'
        f'{REWARD_TABLE}[method]\ntype = "grp"\n'
    ),
    "no_policy.toml": f'tasks = "tasks.jsonl"\n{REWARD_TABLE}',
    "tab.yaml": "policy:\n\tmodel: model\n",
    "twice.yaml": "tasks: tasks.jsonl\ntasks: tasks.jsonl\n",
    "trl.yaml": "num_generations: 8\nlearning_rate: 1.0e-6\n",
    "notes.sh": "echo hello\n",
    "recipe.json": '{"policy": "model"}\n',
    "blank.jsonl": "\n\n\n",
    "indented.jsonl": '{\n "prompt": "1 + 1 ="\n}\n',
    "rows.json": '[{"prompt": "1 + 1 ="}]\n',
    "list.jsonl": '[{"prompt": "1 + 1 ="}]\n',
    "rows.txt": "1 + 1 =\n",
    "semicolons.csv": "prompt;answer\n1 + 1 =;2\n",
    "ragged.csv": "prompt,answer\n1 + 1 =,2\n2 + 2 =,4,5\n",
    "questions.csv": "question,answer\n1 + 1 =,2\n",
    "broken.parquet": "PAR1 no table",
}


def write_tables(folder: Path) -> None:
    """Tables of tasks, good ones and those with one malformed row."""
    good = [{"prompt": f"{i} + 1 =", "answer": str(i + 1)} for i in range(12)]
    chat = [{"prompt": [{"role": "user", "content": row["prompt"]}]} for row in good]
    tables = {
        "tasks": good,
        "chat": chat,
        "null": [*good[:3], {"prompt": None}],
        "no_text": [*good[:3], {"prompt": ""}],
        "message": [*good[:3], {"prompt": [{"role": "user", "text": "1 + 1 ="}]}],
        "sharegpt": [{"prompt": [{"from": "human", "value": "1 + 1 ="}]}],
        "sft": [{"messages": chat[0]["prompt"]}],
        "marked": [
            {"prompt": [{"role": "user", "content": f"{i} + 1<|model|>"}]} for i in range(9)
        ],
        "numbers": [{"prompt": f"{i} + 1 =", "answer": i + 1} for i in range(12)],
        "long": [*good, {"prompt": "1 + " * 100}],
    }
    for name, rows in tables.items():
        (folder / f"{name}.jsonl").write_text(_jsonl(rows))
    (folder / "latin1.jsonl").write_bytes('{"prompt": "caf\xe9"}\n'.encode("latin-1"))


def _jsonl(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)
