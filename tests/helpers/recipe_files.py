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
        "{value = '1', reward = 'rewards.py:digits'}, {value = '20', reward = 'ExactMatch()'}]}\n"
    ),
    "domains.toml": (
        "tasks = 'tasks.jsonl'\npolicy = {model = 'model'}\n[[env.rewards]]\nname = 'correct'\n"
        "fn = {type = 'ByColumn', column = 'answers', routes = [\n"
        "{value = '1', reward = 'rewards.py:digits'}]}\n"
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
        "from grupo.envs import RewardTerm, SingleTurn\nfrom grupo.ray_cluster import OnRay\n"
        "from recipe import RECIPE\n\n"
        "ENV = SingleTurn((RewardTerm('zero', lambda task, rollout: 0),))\n"
        "RECIPE = RECIPE.replace(env=OnRay(ENV))\n"
    ),
}
