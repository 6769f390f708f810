"""Recipes in TOML and YAML: their notation, and the messages for what does not fit."""

from dataclasses import replace

import pytest

from grupo.algo.losses import BoundedIS, Clip, TruncatedIS
from grupo.algo.minibatches import Updates
from grupo.catalogue.parse import parse_method
from grupo.config.recipe_files import load_recipe_file
from grupo.core.schedules import Cosine, Warmup
from grupo.envs import RewardTerm, SingleTurn
from grupo.models.causal_lm import CausalLM
from grupo.models.lora import Lora
from grupo.recipe import Recipe
from grupo.rewards import ExactMatch
from grupo.rollouts.samplers import GroupSampler
from grupo.tasks import Columns, DatasetTasks
from grupo.util.errors import ConfigError

START = """
tasks = "tasks.jsonl"
{}
[policy]
model = "owner/name"
{}
[[env.rewards]]
name = "correct"
fn = "ExactMatch()"
"""
MINIMAL = Recipe(
    policy=CausalLM("owner/name"),
    env=SingleTurn((RewardTerm("correct", ExactMatch()),)),
    tasks=DatasetTasks("tasks.jsonl"),
)


@pytest.fixture
def load(tmp_path):
    def load(text: str, name: str = "recipe.toml") -> Recipe:
        (tmp_path / name).write_text(text)
        return load_recipe_file(tmp_path / name)

    return load


def test_fields_that_a_file_leaves_out_have_their_defaults(load):
    assert load(START.format("", "")) == MINIMAL


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("max_steps = 7", {"max_steps": 7}),
        ("max_grad_norm = 2", {"max_grad_norm": 2.0}),
        ("learning_rate = 'Cosine(1e-5, 0)'", {"learning_rate": Cosine(1e-5, 0.0)}),
        ("learning_rate.type = 'Cosine'\nlearning_rate.start = 1", {"learning_rate": Cosine(1.0)}),
        ("method = 'gspo'", {"method": parse_method("gspo")}),
        ("eval_tasks = 5", {"eval_tasks": 5}),
        ("eval_tasks = \"held.jsonl(prompt='q')\"",
         {"eval_tasks": DatasetTasks("held.jsonl", Columns("q"))}),
        ("evaluation.every = 3", {"evaluation": replace(MINIMAL.evaluation, every=3)}),
        ("stale_correction = 'BoundedIS(0.5, 2.0)'", {"stale_correction": BoundedIS(0.5, 2.0)}),
        ("stale_correction.cap = 3", {"stale_correction": TruncatedIS(3.0)}),
        ("stale_correction = 'None'", {"stale_correction": None}),
        ("optimizer = 'Adam(beta2=0.95)'", {"optimizer": replace(MINIMAL.optimizer, beta2=0.95)}),
    ],
)  # fmt: skip
def test_fields_of_a_recipe(load, line, changes):
    assert load(START.format(line, "")) == MINIMAL.replace(**changes)


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("lora = 'Lora(rank=8)'", {"lora": Lora(8)}),
        ("lora.rank = 8", {"lora": Lora(8)}),
        ("lora = {rank = 8, targets = ['q_proj']}", {"lora": Lora(8, targets=("q_proj",))}),
        ("sampling.top_k = 3", {"sampling": replace(MINIMAL.policy.sampling, top_k=3)}),
        ("stop_strings = ['a', 'b']", {"stop_strings": ("a", "b")}),
        ("dtype = 'bfloat16'", {"dtype": "bfloat16"}),
        ("engine.urls = ['http://127.0.0.1:9']", {}),
    ],
)
def test_fields_of_a_policy(load, line, changes):
    policy = load(START.format("", line)).policy
    assert isinstance(policy, CausalLM)
    assert replace(policy, engine=None) == replace(MINIMAL.policy, **changes)
    assert bool(policy.engine) == ("engine" in line)


def test_table_of_a_method_has_its_arguments_and_changes_its_slots(load):
    table = "[method]\ntype = 'dapo'\nmax_length = 64\noverlong_buffer = 16\n"
    slots = "sampler.group_size = 4\nloss.clip_high = 0.3\nupdates = 'Updates(2)'\n"
    method = load(START.format("", "") + table + slots).method
    assert method == parse_method("dapo(64, 16)").replace(
        sampler=GroupSampler(4), loss=Clip(0.2, 0.3), updates=Updates(2)
    )


def test_table_of_a_method_without_type_changes_the_default_method(load):
    method = load(START.format("", "") + "[method.sampler]\ngroup_size = 4\n").method
    assert method == MINIMAL.method.replace(sampler=GroupSampler(4))


def test_reward_is_an_address_and_has_a_weight(load, tmp_path):
    (tmp_path / "mine.py").write_text("def good(task, rollout):\n    return 1.0\n")
    address = f"{tmp_path / 'mine.py'}:good"
    text = START.format("", "") + f"[[env.rewards]]\nname='good'\nfn='{address}'\nweight = 0.5\n"
    rewards = load(text).env.rewards
    assert rewards[1] == RewardTerm("good", address, 0.5)


def test_modules_beside_the_file_are_importable(load, tmp_path):
    (tmp_path / "reward_beside_recipe.py").write_text("def good(task, rollout):\n    return 1.0\n")
    text = START.format("", "").replace("ExactMatch()", "reward_beside_recipe:good")
    assert load(text).env.rewards[0].fn == "reward_beside_recipe:good"


def test_yaml_is_the_same_recipe_as_toml(load):
    text = (
        "tasks: tasks.jsonl\nlearning_rate: Warmup(0.1, Cosine(1e-5))\npolicy:\n"
        "  model: owner/name\nenv:\n  rewards:\n  - name: correct\n    fn: ExactMatch()\n"
    )
    expected = MINIMAL.replace(learning_rate=Warmup(0.1, Cosine(1e-5)))
    assert load(text, "recipe.yaml") == load(text, "recipe.yml") == expected


def test_number_that_yaml_reads_as_text_is_a_number(load):
    text = "policy: {model: m}\ntasks: t.jsonl\nlearning_rate: 1e-5\n"
    rewards = "env: {rewards: [{name: correct, fn: ExactMatch()}]}\n"
    assert load(text + rewards, "recipe.yaml").learning_rate == 1e-5


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("max_step = 5", "max_step: there is no such field of a recipe. Did you mean 'max_steps'?"),
        ("max_new_tokens = 5", "Did you mean 'policy.max_new_tokens'?"),
        ("max_steps = 0", "recipe.toml: max_steps: 0. Allowed: 1 to 1000000000."),
        ("max_steps = 1.5", "max_steps: 1.5 does not fit. Allowed: a whole number."),
        ("max_steps = 'many'", "max_steps: 'many' does not fit. Allowed: a whole number."),
        ("max_steps = [1]", "max_steps: [1] does not fit. Allowed: a whole number."),
        ("seed = 2020-01-01", "seed: datetime.date(2020, 1, 1) does not fit."),
        ("learning_rate = 'Cosin(1)'", "learning_rate: 'Cosin' cannot be used here. Did you mean"),
        ("learning_rate.type = 'Cosin'", "learning_rate.type: 'Cosin' cannot be used here. Did"),
        ("learning_rate.start = 1", "learning_rate: a table does not fit. Allowed: a number or"),
        ("learning_rate.type = 'Cosine'", "learning_rate.start: it is missing. Allowed: Cosine("),
        ("learning_rate.type = 3", "learning_rate.type: 3 does not fit. Allowed: a string."),
        ("optimizer.type = 'math:pi'", "optimizer.type: 'math:pi' is no component."),
        ("optimizer.type = 'pathlib:Path'", "optimizer.type: 'pathlib:Path' is no component."),
        ("method = 'grpoo'", "method: there is no 'grpoo'. Did you mean 'grpo'?"),
        ("method = 3", "method: 3 does not fit."),
        ("method.type = 'grpo'\nmethod.clip = 1", "method: grpo: there is no argument 'clip'. Did"),
        ("method.group_size = 8", "method.group_size: Method has no field 'group_size'."),
        ("method.sampler.size = 8", "method.sampler.size: GroupSampler has no field 'size'."),
        ("evaluation.success = 'os:getcwd'", "evaluation.success: 'os:getcwd' does not fit."),
        ("eval_tasks = ''", "eval_tasks: The task source is empty."),
        ("aux_models = 3", "aux_models: 3 does not fit. Allowed: a tuple"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named_with_file_and_field(load, tmp_path, line, message):
    with pytest.raises(ConfigError) as caught:
        load(START.format(line, ""))
    assert str(caught.value).startswith(f"{tmp_path / 'recipe.toml'}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("max_new_token = 5", "policy.max_new_token: CausalLM has no field 'max_new_token'. Did"),
        ("max_new_tokens = 0", "recipe.toml: policy.max_new_tokens: 0. Allowed: 1 or more."),
        ("lora.rank = 0", "policy.lora.rank: 0. Allowed: 1 or more."),
        ("lora = 'Lora(0)'", "policy.lora: Lora.rank: 0. Allowed: 1 or more."),
        ("stop_strings = ['a', 3]", "policy.stop_strings[1]: 3 does not fit. Allowed: a string."),
        (
            "dtype = 'fp16'",
            "policy.dtype: 'fp16' does not fit. Allowed: float32 or bfloat16 or float64.",
        ),
        ("type = 'SingleTurn'", "policy.type: 'SingleTurn' cannot be used here."),
    ],
)
def test_what_does_not_fit_in_a_table_is_named_with_its_dotted_field(load, line, message):
    with pytest.raises(ConfigError) as caught:
        load(START.format("", line))
    assert message in str(caught.value)


@pytest.mark.parametrize("field", ["policy", "env", "tasks"])
def test_missing_field_is_named_with_an_example(load, field):
    table = {"policy": "[policy]\nmodel='m'\n", "env": "[[env.rewards]]\nname='a'\nfn='b'\n"}
    tables = {"tasks": "tasks = 't.jsonl'\n", **table}
    with pytest.raises(ConfigError, match=f"{field}: it is missing. Write "):
        load("".join(text for name, text in tables.items() if name != field))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.toml", "max_steps = \n", "r.toml is not valid TOML: Invalid value (at line 1,"),
        ("r.toml", "a = 1\na = 2\n", "r.toml is not valid TOML: Cannot overwrite"),
        ("r.yaml", "a: [\n", "r.yaml is not valid YAML: "),
        ("r.yaml", "a: 1\na: 2\n", "line 2: the key 'a' occurs twice"),
        ("r.yaml", "a: 1\n1: 2\n", "line 2: a key is of the type int; write it in quotes"),
        ("r.yaml", "policy:\n  on: 2\n", "line 2: a key is of the type bool; write it in quotes"),
        ("r.yaml", "? [a]\n: 2\n", "line 1: a key is of the type seq; write it in quotes"),
        ("r.yaml", "null: 2\n", "line 1: a key is of the type null; write it in quotes"),
        ("r.yaml", "a: &x 1\nb: *x\n", "line 2: aliases such as *x are not allowed"),
        ("r.yaml", "a: !!timestamp soon\n", "line 1: tags such as tag:yaml.org,2002:timestamp"),
        ("r.yaml", "a: 1\nb: !!bool maybe\n", "line 2: tags such as tag:yaml.org,2002:bool"),
        ("r.yaml", "- 1\n", "holds no table of fields"),
        ("r.yaml", "a: !!python/object/apply:os.getcwd []\n", "is not valid YAML"),
        ("r.yaml", "max_steps: 3\nsteps: 4\n", "r.yaml, line 2: steps: there is no such field"),
        ("r.yaml", "[" * 200 + "]" * 200, "nested"),
    ],
)
def test_text_that_is_no_recipe_is_refused_with_its_line(load, name, text, message):
    with pytest.raises(ConfigError) as caught:
        load(text, name)
    assert message in str(caught.value)


def test_line_of_a_nested_field_is_named(load):
    text = "policy:\n  model: m\n  lora:\n    rank: 0\ntasks: t.jsonl\nenv: {rewards: []}\n"
    with pytest.raises(ConfigError, match=r"recipe.yaml, line 4: policy\.lora\.rank: 0\."):
        load(text, "recipe.yaml")


def test_missing_file_is_named_with_the_nearest_spelling(load, tmp_path):
    load(START.format("", ""))
    with pytest.raises(ConfigError, match=r"There is no file .*Did you mean 'recipe\.toml'\?"):
        load_recipe_file(tmp_path / "recip.toml")


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (
            "a.toml",
            "seed = [" + 2**15 * "1," + "]",
            r"has 65,5\d\d bytes\. Allowed: at most 65,536 bytes",
        ),
        ("a.yaml", "method: " + 2**16 * "a", r"has 65,5\d\d bytes\. Allowed: at most 65,536 bytes"),
        ("a.yaml", "seed: [" + 10_000 * "1," + "]", "values. Allowed: at most 10,000 values"),
        ("a.yaml", 20_000 * "[", "nested too deep. Allowed: at most 100 levels"),
        ("a.toml", 20 * "a." + "a = 1", "a key has too many parts. Allowed: at most 20"),
        ("a.toml", "[" + 20 * "'a' . " + "a]", "a key has too many parts. Allowed: at most 20"),
        ("a.toml", "x = {" + 20 * '"\\"". ' + "a=1}", "a key has too many parts. Allowed: at mo"),
    ],
)
def test_a_file_that_takes_seconds_to_parse_is_refused(load, name, text, problem):
    with pytest.raises(ConfigError, match=problem):
        load(text, name)


def test_dots_in_texts_numbers_and_comments_are_no_parts_of_a_key(load):
    dots = 50 * "a."
    texts = f'# {dots}\nmetadata = ["{dots}", \'{dots}\', 0.1, """{dots}""""]'
    with pytest.raises(ConfigError, match="metadata: there is no such field"):
        load(f"{texts}\n", "a.toml")
