"""The stages of the first hour; each asserts its result."""

import json

from clock import Stage, StageError, User
from judge_server import judge_server
from user_files import (
    JUDGED,
    LOAD_EXPORT,
    MODEL,
    NOTEBOOK,
    OWN_ENVIRONMENT,
    REWARDS,
    TASKS,
)

SMALL = ("--policy.max-new-tokens", "8", "--prompts-per-step", "2", "--eval-tasks", "4")
STEPS = ("--steps", "2")
GROUP = ("--method.sampler.group-size", "4")
OWN_MODEL = ("train", "--model", "my_model")
RUN_FILES = ("recipe.json", "metrics.jsonl", "rollouts.jsonl", "summary.json")


def build_model(user: User) -> None:
    """A real architecture and a trained tokenizer, built on the spot."""
    user.script("build_model.py", MODEL)
    user.expect("parameters")
    user.expect_files("my_model/model.safetensors", "my_model/tokenizer.json")
    user.script("build_tasks.py", TASKS)
    user.expect_files("train.jsonl", "chat.jsonl", "train.csv", "train.parquet")
    user.write("rewards.py", REWARDS)


def train_own_model(user: User) -> None:
    """The command of the README: a model, tasks, a reward; all else is chosen."""
    arguments = ("--tasks", "train.jsonl", "--reward", "rewards.py:digits")
    method = ("--method", "dapo(max_length=16, overlong_buffer=4)")
    user.grupo(*OWN_MODEL, *arguments, *method, "--steps", "10", "--run", "runs/first")
    user.expect("held-out", "The run is in runs/first")
    check_run(user, "runs/first", steps=10)


def own_rewards(user: User) -> None:
    """Two weighted rewards in TRL's signature, and one in verl's."""
    rewards = ("--reward", "rewards.py:digits", "--reward", "brief=0.1*rewards.py:short")
    tasks = ("--tasks", "train.jsonl")
    user.grupo(*OWN_MODEL, *tasks, *rewards, *SMALL, *GROUP, *STEPS, "--run", "runs/rewards")
    metrics = check_run(user, "runs/rewards", steps=2)
    if not {"reward/digits", "reward/brief"} <= set(metrics):
        raise StageError(f"A reward term is missing: {sorted(metrics)}")


def own_data(user: User) -> None:
    """CSV, a conversation in JSONL, and verl's Parquet."""
    sources = {
        "csv": ("train.csv(prompt='question')", "rewards.py:digits"),
        "chat": ("chat.jsonl", "rewards.py:solved"),
        "parquet": ("train.parquet", "rewards.py:compute_score"),
    }
    for name, (tasks, reward) in sources.items():
        arguments = (*OWN_MODEL, "--tasks", tasks, "--reward", reward, *SMALL, *GROUP)
        user.grupo(*arguments, "--steps", "1", "--run", f"runs/{name}")
        check_run(user, f"runs/{name}", steps=1)


def judged(user: User) -> None:
    """A judge over HTTP."""
    with judge_server() as url:
        user.write("judged.py", JUDGED.format(url=url))
        user.grupo("train", "judged.py", "--run", "runs/judged")
    check_run(user, "runs/judged", steps=2)
    summary = json.loads((user.folder / "runs/judged/summary.json").read_text())
    if not summary["ledger"].get("usage/judge_calls"):
        raise StageError("The judge was not called.")


def own_environment(user: User) -> None:
    """A game in ten lines, and an environment of Gymnasium by its name."""
    user.write("guess.py", OWN_ENVIRONMENT)
    user.grupo("train", "guess.py", "--run", "runs/guess")
    check_run(user, "runs/guess", steps=2)
    env = ("--env", "gymnasium:CartPole-v1(max_turns=4, count=20)")
    user.grupo(*OWN_MODEL, *env, *SMALL, *GROUP, *STEPS, "--run", "runs/cartpole")
    check_run(user, "runs/cartpole", steps=2)


def notebook(user: User) -> None:
    """A notebook in a real kernel: a model, a table and a reward of its cells."""
    user.script("run_notebook.py", NOTEBOOK)
    user.expect("shown as HTML")
    check_run(user, "runs/notebook", steps=2)


def recipe_file(user: User) -> None:
    """A recipe in TOML, written by --dry-run and trained."""
    arguments = ("--tasks", "train.jsonl", "--reward", "rewards.py:digits", *SMALL, *GROUP, *STEPS)
    printed = user.run(user.python, "-m", "grupo", *OWN_MODEL, *arguments, "--dry-run")
    start = printed.index("# ")  # standard error stands before the recipe
    user.write("recipe.toml", printed[start:])
    user.grupo("train", "recipe.toml", "--run", "runs/toml")
    check_run(user, "runs/toml", steps=2)


def comparison(user: User) -> None:
    """Two methods under two seeds; its cost is estimated before and after."""
    methods = ("--method", "grpo(group_size=4)", "--method", "rloo(group_size=4)")
    arguments = ("compare", "recipe.toml", *methods, "--budget", "steps=2", "--seeds", "2")
    user.grupo(*arguments, "--out", "compared", "--estimate")
    user.expect("4 runs")
    user.grupo(*arguments, "--out", "compared")
    user.expect("What cannot", "The report is")
    user.expect_files("compared/report.md")


def reports(user: User) -> None:
    """The page of a run and of a comparison, and the doctor."""
    user.grupo("report", "runs/first", "--out", "first.html")
    user.grupo("report", "compared", "--out", "compared.html")
    user.expect_files("first.html", "compared.html")
    user.grupo("doctor", "runs/first")
    user.grupo("rollouts", "runs/first", "--worst", "2")
    user.expect("reference answer")
    user.grupo("methods", "grpo")
    user.expect("grpo")


def after_training(user: User) -> None:
    """Evaluate, extend, check and export a run; transformers loads the export."""
    user.grupo("eval", "runs/first", "--attempts", "4", "--count", "4")
    user.expect("pass@4")
    user.grupo("resume", "runs/toml", "--steps", "3")
    check_run(user, "runs/toml", steps=3)
    user.grupo("check", "runs/first")
    user.grupo("export", "runs/first", "exported")
    user.expect_files("exported/README.md", "exported/model.safetensors")
    user.script("load_export.py", LOAD_EXPORT)
    user.expect("tokens:")


def check_run(user: User, run: str, steps: int) -> dict[str, float]:
    """The metrics of the last step; raises `StageError` if the run has another number of steps."""
    user.expect_files(*(f"{run}/{name}" for name in RUN_FILES))
    lines = (user.folder / run / "metrics.jsonl").read_text().splitlines()
    if len(lines) != steps:
        raise StageError(f"{run} has {len(lines)} steps, not {steps}.")
    return json.loads(lines[-1])


STAGES: tuple[Stage, ...] = (
    ("build a Qwen3, a tokenizer and tasks", build_model),
    ("train it: model, tasks, reward", train_own_model),
    ("own rewards, weighted", own_rewards),
    ("own data: CSV, chat, Parquet", own_data),
    ("a judge over HTTP", judged),
    ("own environment, and Gymnasium", own_environment),
    ("a notebook", notebook),
    ("a recipe in TOML", recipe_file),
    ("comparison of two methods", comparison),
    ("report, doctor, rollouts", reports),
    ("evaluate, extend, check, export", after_training),
)
