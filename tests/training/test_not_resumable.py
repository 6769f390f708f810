"""Runs with objects in memory: recorded, readable, and not resumable."""

import json

import pytest
from transformers import AutoModelForCausalLM

from grupo.compare import Comparison, Steps, run_comparison
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.models.loaded import LoadedModel
from grupo.recipe import Recipe
from grupo.report.doctor import examine
from grupo.report.html.build import write_html_report
from grupo.rollouts.samplers import GroupSampler
from grupo.training.callbacks import NullCallback
from grupo.training.resume.extend import extend_run
from grupo.training.resume.load_run import load_policy
from grupo.training.resume.run_check import RunChecker
from grupo.training.resume.run_folder import RunFolder
from grupo.training.resume.start_from import with_model
from grupo.training.start import resume_training, run_training
from grupo.util.errors import ConfigError
from grupo.util.in_memory import MissingObject
from tests.helpers.tiny_lm import save_model, tokenizer

ROWS = [{"prompt": f"{i} + 1 =", "answer": str(i + 1)} for i in range(6)]


class Messages(NullCallback):
    """Collects the messages of a run, and can interrupt it after a step."""

    def __init__(self, interrupt_at: int = 0) -> None:
        self.lines: list[str] = []
        self.interrupt_at = interrupt_at

    def on_message(self, message):
        self.lines.append(message)

    def on_step_end(self, step, metrics):
        if step == self.interrupt_at:
            raise KeyboardInterrupt


def recipe_of(model, tasks=ROWS, **changes):
    def ends_with_digit(completions):
        return [float(text[-1:].isdigit()) for text in completions]

    return Recipe(
        policy=CausalLM(model, max_new_tokens=4, device="cpu"),
        env=SingleTurn((RewardTerm("digit", ends_with_digit),)),
        tasks=tasks,
        eval_tasks=2,
        method=grpo(group_size=4, kl_coef=0.01),
        max_steps=2,
        prompts_per_step=2,
        learning_rate=1e-3,
        save_every=1,
    ).replace(**changes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def finished(folder, tmp_path_factory):
    """A finished run with a local reward and a list of tasks, and its messages."""
    run = tmp_path_factory.mktemp("runs") / "finished"
    messages = Messages()
    run_training(recipe_of(str(folder)), run, messages)
    return run, messages.lines


@pytest.fixture(scope="module")
def with_loaded_model(folder, tmp_path_factory):
    """A finished run whose model was in memory."""
    run = tmp_path_factory.mktemp("runs") / "loaded"
    model = AutoModelForCausalLM.from_pretrained(folder)
    run_training(recipe_of(LoadedModel(model, tokenizer())), run)
    return run, model


@pytest.mark.slow
def test_one_line_at_the_start_names_the_objects(finished):
    _, lines = finished
    (line,) = [line for line in lines if line.startswith("Not resumable")]
    assert "env.rewards[0].fn.function (function recipe_of.<locals>.ends_with_digit in" in line
    assert line.endswith("tasks (a list of 6 rows with the columns prompt, answer).")
    assert "\n" not in line


def test_resuming_is_refused_with_what_to_do(finished):
    run, _ = finished
    with pytest.raises(ConfigError) as caught:
        resume_training(run)
    message = str(caught.value)
    assert "cannot be resumed: only the process that began it had env.rewards[0].fn" in message
    assert "write ends_with_digit at the top level of a file and import it" in message
    assert "save_to_disk('tasks') and name them with DatasetTasks('tasks')" in message


def test_extending_is_refused_before_a_file_changes(finished):
    run, _ = finished
    before = (run / "recipe.json").read_bytes()
    with pytest.raises(ConfigError, match="cannot be resumed"):
        extend_run(run, lambda recipe: recipe.replace(max_steps=9))
    assert (run / "recipe.json").read_bytes() == before


def test_the_recipe_is_read_with_placeholders(finished):
    recipe = RunFolder.open(finished[0]).recipe
    assert isinstance(recipe.tasks, MissingObject)
    assert recipe.method == grpo(group_size=4, kl_coef=0.01)
    with pytest.raises(ConfigError, match=r"a list of 6 rows .* existed only in the process"):
        recipe.tasks.load()


def test_every_file_is_intact_and_nothing_proposes_to_resume(finished):
    run, _ = finished
    result = RunChecker(run)()
    assert result.is_intact
    assert "not resumable: it used objects in memory" in result.describe(run)
    assert "grupo resume" not in result.describe(run)


def test_doctor_and_report_read_the_run(finished, tmp_path):
    run, _ = finished
    examine(run)
    page = tmp_path / "report.html"
    write_html_report([run], page)
    assert page.stat().st_size > 10_000


def test_the_policy_is_loaded_and_exported_if_its_model_has_a_folder(finished, tmp_path):
    policy, _ = load_policy(finished[0])
    policy.export(tmp_path / "exported")
    assert (tmp_path / "exported" / "config.json").is_file()


def test_a_model_in_memory_is_trained_as_one_of_a_folder(finished, with_loaded_model):
    def metrics(run):
        lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
        names = ("reward/mean", "grad_norm", "policy/entropy", "policy/kl_ref")
        return [[line[name] for name in names] for line in lines]

    assert metrics(with_loaded_model[0])[0] == pytest.approx(metrics(finished[0])[0], rel=1e-3)


def test_the_trained_model_is_the_users_own(with_loaded_model, folder):
    _, model = with_loaded_model
    untrained = AutoModelForCausalLM.from_pretrained(folder)
    pairs = zip(model.parameters(), untrained.parameters(), strict=True)
    assert any(not a.equal(b) for a, b in pairs)
    inputs = tokenizer()("1 +", return_tensors="pt", return_token_type_ids=False)
    model.generate(**inputs, max_new_tokens=2)


def test_a_model_in_memory_is_neither_loaded_again_nor_a_start(with_loaded_model, folder):
    run, _ = with_loaded_model
    assert RunChecker(run)().is_intact
    with pytest.raises(ConfigError, match=r"LlamaForCausalLM of .* existed only in the process"):
        load_policy(run)
    with pytest.raises(ConfigError, match=r"began with a model in memory, LlamaForCausalLM of"):
        with_model(recipe_of(str(folder)), str(run))


def test_a_model_is_released_if_the_run_cannot_begin(folder, tmp_path):
    model = AutoModelForCausalLM.from_pretrained(folder)
    attention = model.config._attn_implementation
    long_prompt = [*ROWS, {"prompt": 100 * "long", "answer": ""}]
    with pytest.raises(ConfigError, match="leave no room for an answer: tasks, row 7"):
        run_training(
            recipe_of(LoadedModel(model, tokenizer()), tasks=long_prompt), tmp_path / "run"
        )
    assert model.config._attn_implementation == attention
    assert not (tmp_path / "run").exists()


def test_a_reward_without_its_columns_is_refused_before_work(folder, tmp_path):
    env = SingleTurn((RewardTerm("reward", lambda completions, solution: [0.0]),))
    with pytest.raises(ConfigError, match=r"the parameter 'solution' of .*<lambda> is no column"):
        run_training(recipe_of(str(folder), env=env), tmp_path / "run")


def test_a_lambda_with_other_arguments_is_refused_with_the_allowed_ones():
    with pytest.raises(ConfigError, match=r"<lambda>\(x, y\) has no signature .* f\(task, rollo"):
        RewardTerm("reward", lambda x, y: 0.0)


def test_lambdas_of_a_method_are_described(folder, tmp_path):
    method = Method(sampler=GroupSampler(4), filter=lambda groups: groups)
    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        run_training(recipe_of(str(folder), method=method, eval_tasks=0), run, Messages(1))
    assert isinstance(RunFolder.open(run).recipe.method.filter, MissingObject)
    (finding,) = [f for f in examine(run) if f.name == "stopped early"]
    assert "cannot be resumed: train in a new folder" in finding.suggestions[0]


def test_a_comparison_refuses_objects_in_memory(folder, tmp_path):
    comparison = Comparison({"grpo": recipe_of(str(folder))}, Steps(1), seeds=1)
    with pytest.raises(ConfigError) as caught:
        run_comparison(comparison, tmp_path / "comparison")
    assert "env.rewards[0].fn.function: function recipe_of" in str(caught.value)
    assert "every run of a comparison has a process of its own" in str(caught.value)
    assert not (tmp_path / "comparison").exists()
