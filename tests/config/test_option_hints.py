"""Options of other libraries: grupo has each option that they are answered with."""

import re
import shlex

import pytest

from grupo.cli.build_recipe import RecipeArgs
from grupo.cli.fields import FLAGS, split_arguments
from grupo.config.migrate.page import migration_page
from grupo.config.option_hints import COMMON, LIBRARIES, OtherOption, explain_option, find_option
from grupo.config.option_hints.option import Library
from grupo.recipe import Recipe
from grupo.util.errors import ConfigError
from tests.helpers.paths import ROOT

COMMAND_OPTIONS = ("--run", "--reward", "--tasks", "--eval-tasks", "--model", "--method")
ANSWERED = [
    pytest.param(library, option, id=f"{library.name or 'common'}-{option.name}")
    for library in (*LIBRARIES, COMMON)
    for option in library.options
    if option.answer.startswith("--")
]


def make_recipe(arguments: list[str]) -> Recipe:
    """The quickstart's recipe with the options; those that are no fields as `grupo train` does."""
    option, *values = arguments
    field = option.removeprefix("--").replace("-", "_")
    if option == "--tasks" or option == "--reward":
        return RecipeArgs(**{"rewards" if field == "reward" else field: ()})()
    if option in COMMAND_OPTIONS and option != "--run":
        return RecipeArgs(**{field: values[0]})()
    _, fields = split_arguments(arguments)
    return RecipeArgs(fields=fields)()


@pytest.mark.parametrize(("library", "option"), ANSWERED)
def test_answer_is_an_option_of_grupo(library: Library, option: OtherOption):
    arguments = shlex.split(option.grupo_option())
    if arguments[0].removeprefix("--") in FLAGS:
        assert len(arguments) == 1
    elif arguments[0] in ("--run", "--env.rewards"):
        assert len(arguments) == 2
    else:
        assert isinstance(make_recipe(arguments), Recipe)


def test_at_least_ninety_names_are_answered():
    for library in LIBRARIES:
        assert sum(bool(option.answer) for option in library.options) >= 25, library.name
    assert sum(bool(o.answer) for library in LIBRARIES for o in library.options) > 150


def test_no_name_occurs_twice_in_a_library():
    for library in (*LIBRARIES, COMMON):
        names = [option.name for option in library.options]
        assert len(names) == len(set(names)), library.name


def test_every_option_without_answer_has_a_reason():
    for library in LIBRARIES:
        assert all(option.answer or option.note for option in library.options)


def test_page_has_the_tables():
    assert (ROOT / "docs" / "migrate.md").read_text() == migration_page(), "run: make docs"


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("num-generations", "8", "TRL's --num-generations is --method.sampler.group-size 8."),
        ("num_generations", "", "TRL's --num-generations is --method.sampler.group-size 8."),
        ("bf16", "True", "TRL's --bf16 is --policy.dtype bfloat16."),
        ("top_k", "-1", "TRL's --top-k is --policy.sampling.top-k 0."),
        (
            "actor_rollout_ref.rollout.n",
            "4",
            "verl's actor_rollout_ref.rollout.n is --method.sampler.group-size 4.",
        ),
        (
            "+algorithm.lam",
            "0.95",
            'verl\'s algorithm.lam is --method "ppo(gae_lambda=0.95)".',
        ),
        (
            "rollout.n_samples_per_prompt",
            "4",
            "OpenRLHF's --rollout.n-samples-per-prompt is --method.sampler.group-size 4.",
        ),
        ("trainer.optim.lr", "1e-6", "prime-rl's --trainer.optim.lr is --learning-rate 1e-6."),
        ("group", "4", "--group is --method.sampler.group-size 4."),
        (
            "vllm_tensor_parallel_size",
            "2",
            "TRL's --vllm-tensor-parallel-size has no counterpart: --ranks N places the processes,"
            " --policy.sharding divides the weights.",
        ),
        ("trainer.nnodes", "", "verl's trainer.nnodes has no counterpart: --ranks N places"),
        ("no_such_name", "1", ""),
        ("n", "1", ""),
    ],
)
def test_option_is_explained_with_its_value(name, value, sentence):
    assert explain_option(name, value).startswith(sentence)
    assert bool(explain_option(name, value)) == bool(sentence)


def test_patterns_come_after_names():
    library = next(x for x in LIBRARIES if x.name == "OpenRLHF")
    assert find_option("ds.lora.rank", library).answer
    assert find_option("ds.zpg", library).is_neutral


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--beta", "0.04"],
            "--beta: grupo has no such option. TRL's --beta is --method \"grpo(kl",
        ),
        (["--bf16"], "--bf16: it has no value. TRL's --bf16 is --policy.dtype bfloat16."),
        (["--kl", "0.1"], '--kl is --method "grpo(kl_coef=0.1)"'),
        (["--config", "a.toml"], "--config is an argument: grupo train a.toml."),
        (["--per-device-train-batch-size", "4"], "--prompts-per-step 4 (it counts answers: "),
        (["trainer.total_epochs=3"], "verl's trainer.total_epochs is --steps 3 (the number of"),
        (["true"], "'true' is no recipe. Flags have no value: --tensorboard, --trackio, --wandb"),
        (["--policy.lora", "Lora(r=16)"], "policy.lora: Lora has no 'r'. Did you mean 'rank'?"),
        (["--policy.sampling.temprature", "1"], "Did you mean 'temperature'?"),
    ],
)
def test_command_line_answers_with_the_option_of_grupo(arguments, message):
    with pytest.raises(ConfigError) as caught:
        RecipeArgs(fields=split_arguments(arguments)[1])()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("GRPO", "there is no 'GRPO'. Did you mean 'grpo'?"),
        ("Dr_GRPO", "Did you mean 'dr_grpo'?"),
        ("dr-grpo", "is neither a name nor name(argument=value). Did you mean 'dr_grpo'?"),
        ("grpo(beta=0.04)", "grpo: there is no argument 'beta'. Did you mean 'kl_coef'?"),
        ("grpo(epsilon=0.2)", "grpo: there is no argument 'epsilon'. Did you mean 'clip_eps'?"),
        ("grpo(num_generations=8)", "Did you mean 'group_size'?"),
    ],
)
def test_method_is_corrected(method, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        RecipeArgs(method=method)()
