"""Files of recipes, most with one mistake, and a script of TRL, for the folder of a user."""

TRL_SCRIPT = """
from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer

from rewards import words

GRPOTrainer(
    model="model",
    reward_funcs=words,
    train_dataset=load_dataset("owner/texts"),
    args=GRPOConfig(beta=0.1, max_steps=3, bf16=False),
)
"""


REWARDS = "[[stages.recipe.env.rewards]]\nname = 'digits'\nfn = 'rewards.py:digits'\n"
ENDLESS = (
    "[stages.recipe]\ntasks = 'tasks.jsonl'\npolicy = {model = 'endless', max_new_tokens = 8}\n"
    f"{REWARDS}"
)
COLLECTED = (
    "[stages.recipe]\ntasks = {type = 'grupo.pipeline:CollectedTasks', stage = 'rl'}\n"
    f"policy = {{model = 'model', max_new_tokens = 8}}\n{REWARDS}"
)


def _stages(*tables: str) -> str:
    """A pipeline of two stages, with further lines of the second one."""
    first = "[[stages]]\nname = 'sft'\nrecipe = 'recipe.py:RECIPE'\n"
    own = ("" if "stages.recipe" in x else "recipe = 'recipe.py:RECIPE'\n" for x in tables)
    pairs = zip(own, tables, strict=True)
    return first + "".join(f"[[stages]]\n{recipe}{table}\n" for recipe, table in pairs)


STAGES = {
    "good": _stages("name = 'rl'"),
    "typo": _stages("name = 'rl'\nstart = 'stf'"),
    "later": _stages("name = 'a'\nstart = 'b'", "name = 'b'"),
    "twice": _stages("name = 'sft'"),
    "name": _stages("name = 'a/b'"),
    "field": _stages("name = 'rl'\nstrat = 'sft'"),
    "kind": _stages("name = 'rl'\ntype = 'Satge'"),
    "shares": _stages("name = 'rl'\nstart = {sft = 0.5, 'sft@best' = 0.6}"),
    "metric": _stages("name = 'rl'\nwhen = \"MetricAtLeast('eval/smapled', 0.5)\""),
    "model": _stages("name = 'rl'", f"name = 'c'\n{ENDLESS}"),
    "kinds": _stages("name = 'rl'\ntype = 'SurveyStage'", f"name = 'c'\n{COLLECTED}"),
}
RECIPE_FILES = {
    "typo.toml": "max_step = 3\n",
    "trl.toml": "num_generations = 3\n",
    "range.yaml": (
        "tasks: tasks.jsonl\nmax_steps: 0\npolicy: {model: model}\n"
        "env: {rewards: [{name: digits, fn: 'rewards.py:digits'}]}\n"
    ),
    "torn.toml": "max_steps = [",
    "ray.toml": (
        "tasks = 'tasks.jsonl'\npolicy = {model = 'model'}\n[env]\ntype = 'OnRay'\n"
        "env = {type = 'SingleTurn', rewards = [{name = 'digits', fn = 'rewards.py:digits'}]}\n"
    ),
    "routes.toml": (
        "tasks = 'tasks.jsonl'\npolicy = {model = 'model'}\n[[env.rewards]]\nname = 'correct'\n"
        "fn = {type = 'ByColumn', column = 'answer', routes = [\n"
        "{value = '1', fn = 'rewards.py:digits'}, {value = '20', fn = 'ExactMatch()'}]}\n"
    ),
    "domains.toml": (
        "tasks = 'tasks.jsonl'\npolicy = {model = 'model'}\n[[env.rewards]]\nname = 'correct'\n"
        "fn = {type = 'ByColumn', column = 'answers', routes = [\n"
        "{value = '1', fn = 'rewards.py:digits'}]}\n"
    ),
    "instructions.toml": (
        "tasks = 'tasks.jsonl'\npolicy = {model = 'model'}\n[[env.rewards]]\n"
        "name = 'followed'\nfn = 'InstructionFollowing()'\n"
    ),
    "options.toml": (
        "tasks = 'tasks.jsonl'\npolicy = {model = 'model'}\n[[env.rewards]]\n"
        "name = 'correct'\nfn = \"MultipleChoice(options='answer')\"\n"
    ),
    "unwritable.py": (
        "from grupo.envs import RewardTerm, SingleTurn\nfrom grupo.ray_workers import OnRay\n"
        "from recipe import RECIPE\n\n"
        "ENV = SingleTurn((RewardTerm('zero', lambda task, rollout: 0),))\n"
        "RECIPE = RECIPE.replace(env=OnRay(ENV))\n"
    ),
    **{f"stages_{name}.toml": text for name, text in STAGES.items()},
}
