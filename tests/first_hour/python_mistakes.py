"""Mistakes in Python, in a script or a notebook."""

from tests.first_hour.mistake import Mistake

IMPORTS = """
from grupo import CausalLM, Recipe, RewardTerm, SingleTurn, resume, train
from grupo.envs.games import ActionNames
from grupo.envs.tools import Toolbox
from grupo.models.multi_policy_spec import MultiPolicy, RolePolicy
from grupo.rewards import ChatEndpoint, Judge, Rubric
from grupo.rewards.judges import LetterChoice, NumberAfter, YesNo
from grupo.rollouts.samplers import GroupSampler, ReviewPairs
from recipe import RECIPE
from rewards import digits

server = ChatEndpoint("judge", base_url="http://127.0.0.1:9/v1", api_key_env="")
"""


def python(line: str, *parts: str) -> Mistake:
    """A line after the usual imports."""
    return Mistake(f"{IMPORTS}\n{line}\n", *parts)


RECIPES = (
    python("SingleTurn(RewardTerm('a', digits))", "SingleTurn.rewards", "a tuple", "RewardTerm(…)"),
    python("SingleTurn((digits,))", "(rewards.digits,)", "a tuple", "RewardTerm(…)"),
    python("SingleTurn(())", "rewards: named []", "at least one", "no name twice"),
    python(
        "RewardTerm('a', 'exact')", "'exact' is not an address", "module:name", "path/to/file.py"
    ),
    python("RewardTerm('a', digits, '1')", "RewardTerm.weight: '1'", "Allowed", "a number"),
    python("CausalLM('model', lora=16)", "CausalLM.lora: 16", "Allowed", "Lora(…) or None"),
    python("GroupSampler(0)", "group_size: 0", "Allowed", "1 or more"),
    python("RECIPE.replace(method='grpo')", "'grpo'", "Allowed", "Method(…)"),
    python("train(RECIPE, 'run')", "'run' exists", "Name another folder", "grupo resume run"),
    python("resume('runn')", "'runn' is not a folder", "Allowed: run", "Did you mean 'run'?"),
)
JUDGES = (
    python(
        "Judge(server, prompt='Rate {prompt}', parse=YesNo('Correct:'))",
        *("'Rate {prompt}'", "Allowed", "the placeholder {completion}"),
    ),
    python(
        "judge = Judge(server, prompt='{gold} {completion}', parse=YesNo('Correct:'))\n"
        "train(RECIPE.replace(env=SingleTurn((RewardTerm('a', judge),))), 'new')",
        *("{gold}", "tasks.jsonl, line", "Allowed: answer"),
    ),
    python("NumberAfter('Score:', 10, 1)", "NumberAfter.high: 1", "Allowed", "above low, 10"),
    python("LetterChoice('Grade:', 'AB', (1.0,))", "(1.0,)", "Allowed", "one for each of 'AB'"),
    python("Rubric(server, ())", "items named []", "Allowed", "at least one"),
    python("ChatEndpoint('a', base_url='localhost:9')", "'localhost:9'", "Allowed", "http(s)://"),
    python(
        "server = ChatEndpoint('a', api_key_env='NO_KEY')\n"
        "judge = Judge(server, '{completion}', YesNo('Correct:'))\n"
        "train(RECIPE.replace(env=SingleTurn((RewardTerm('a', judge),))), 'new')",
        *("'NO_KEY' is not set", "Set it to the key of", "api_key_env=''"),
    ),
)
ENVIRONMENTS = (
    python("Toolbox((lambda x: x,))", "argument 'x' of <lambda>", "has no type of", "str, int"),
    python("ActionNames(())", "names: ()", "Allowed", "at least one"),
)
ROLES = (
    python(
        "policy = MultiPolicy(CausalLM('model'), (), main_trained=False)\n"
        "train(RECIPE.replace(policy=policy), 'new')",
        *("policy.main_trained: False", "Allowed", "at least one policy with trained=True"),
    ),
    python(
        "reviewer = RolePolicy('reviewer', CausalLM('model'), trained=False)\n"
        "policy = MultiPolicy(CausalLM('model'), (reviewer,))\n"
        "method = RECIPE.method.replace(sampler=ReviewPairs())\n"
        "train(RECIPE.replace(policy=policy, method=method), 'new')",
        *("policy.roles[0].trained: False", "Allowed", "True; or a sampler"),
    ),
)
PYTHON = (*RECIPES, *JUDGES, *ENVIRONMENTS, *ROLES)
