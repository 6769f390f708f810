"""The recipes in which a toy model learns to use a tool."""

import asyncio
import shutil
from collections import Counter
from dataclasses import replace
from random import Random
from statistics import fmean

import pytest

from grupo.algo.advantages import chain
from grupo.core.interfaces import run_rollout, score_group
from grupo.core.types import Response, Task
from grupo.envs.tools import Python
from grupo.recipe import Evaluation
from grupo.testing.smoke.run import negate
from grupo.toy import ensure_trained
from grupo.toy.tool_use import (
    UNCLOSED_CALL_ERROR,
    NoisyDemonstrator,
    ToolTasks,
    best_constant_accuracy,
)
from grupo.toy.untrained_llama import LlamaArchitecture
from grupo.training.start import run_training
from grupo.util.errors import ConfigError
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

AGENTS = ROOT / "recipes" / "agents"
FILES = {name: load_module_file(AGENTS / f"{name}.py") for name in ("sql_tool", "python_tool")}
TINY = LlamaArchitecture(hidden_size=16, intermediate_size=32, num_layers=1, num_heads=2)
PERFECT = {
    "call_prob": 1.0,
    "condition_prob": 1.0,
    "word_prob": 1.0,
    "close_prob": 1.0,
    "use_result_prob": 1.0,
}


@pytest.fixture(params=FILES)
def file(request, tmp_path, monkeypatch):
    """The module of a recipe, in a folder of its own; Python programs need bubblewrap."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path / ".grupo"))
    if request.param == "python_tool":
        if shutil.which("bwrap") is None:
            pytest.skip("bubblewrap is not installed")
        try:
            Python().sandbox.check()
        except ConfigError as error:
            pytest.skip(str(error))
    return FILES[request.param]


class DemonstratorActor:
    """An actor that answers with the texts of a demonstrator."""

    def __init__(self, task, demonstrator):
        self.task, self.demonstrator, self.observations = task, demonstrator, []

    async def __call__(self, rollout, observation):
        self.observations.append(observation)
        text = self.demonstrator(self.task, self.observations, Random(0))
        return Response((7,), (-1.0,), (0,), text)


def play(env, task, demonstrator):
    async def work():
        opened = env.open()
        rollout = await run_rollout(task, opened, DemonstratorActor(task, demonstrator))
        return await score_group(task, opened, [rollout])

    return asyncio.run(work()).rollouts[0]


def test_no_combination_of_words_is_both_trained_on_and_held_out(file):
    num_words = len([choices for choices in file.CHOICES if not choices[0].isdigit()])
    trained, held_out = (
        {task.columns["words"][:num_words] for task in source.load()}
        for source in (file.RECIPE.tasks, file.RECIPE.eval_tasks)
    )
    assert not trained & held_out
    fraction = len(held_out) / len(trained | held_out)
    assert 0.15 < fraction < 0.35
    for place in range(num_words):  # but every single word occurs in training
        assert {words[place] for words in held_out} <= {words[place] for words in trained}


def test_the_tool_returns_the_answer_only_to_a_call_with_the_condition(file):
    task = file.RECIPE.eval_tasks.load()[0]
    perfect = NoisyDemonstrator(file.TASK_FAMILY, **PERFECT)
    correct = play(file.RECIPE.env, task, perfect)
    assert (correct.reward, correct.reward_terms["tool_calls"]) == (1.0, 1.0)
    assert correct.turns[1][0][0]["content"].splitlines()[-1] == task.reference_answer
    careless = play(file.RECIPE.env, task, replace(perfect, condition_prob=0.0))
    assert (careless.reward, careless.reward_terms["tool_calls"]) == (0.0, 1.0)


def test_an_answer_without_a_valid_call_is_not_rewarded(file):
    task = file.RECIPE.eval_tasks.load()[0]
    no_call = play(file.RECIPE.env, task, lambda task, observations, rng: task.reference_answer)
    assert (no_call.reward, len(no_call.turns)) == (0.0, 1)
    unclosing = replace(NoisyDemonstrator(file.TASK_FAMILY, **PERFECT), close_prob=0.0)
    unclosed = play(file.RECIPE.env, task, unclosing)
    assert (unclosed.reward_terms["malformed"], unclosed.reward) == (1.0, 0.0)


def test_a_noisy_demonstrator_errs_with_its_probabilities(file):
    task, rng = file.RECIPE.tasks.load()[0], Random(1)
    family, result = file.TASK_FAMILY, ({"role": "tool", "content": "head\n-5"},)
    demonstrator, count = NoisyDemonstrator(family), 2000
    texts = [demonstrator(task, ["?"], rng) for _ in range(count)]
    calls = [text for text in texts if "<tool_call>" in text]
    # four standard deviations of a fraction of 2000 are at most 4 sqrt(0.25 / 2000) = 0.045
    assert len(calls) / count == pytest.approx(0.8, abs=0.045)
    assert fmean(text.endswith("</tool_call>") for text in calls) == pytest.approx(0.95, abs=0.03)
    condition = {"sql": "WHERE", "python": " if "}[family.tool_name]
    assert fmean(condition in text for text in calls) == pytest.approx(0.5, abs=0.05)
    used = [demonstrator(task, ["?", result], rng) == "-5" for _ in range(count)]
    assert fmean(used) == pytest.approx(0.85, abs=0.04)
    error = ({"role": "tool", "content": "error: no"},)
    assert demonstrator(task, ["?", error], rng) in family.answers


def test_every_word_is_a_token_and_no_token_is_unknown(file, tmp_path):
    from transformers import AutoTokenizer

    replace(file.BASE_MODEL, architecture=TINY).save_untrained(tmp_path / "start")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "start")
    for task in file.RECIPE.eval_tasks.load():
        call = file.TASK_FAMILY.tool_call(task.columns["words"])
        for text in (task.prompt, call):
            ids = tokenizer(text)["input_ids"]
            assert tokenizer.unk_token_id not in ids
            assert tokenizer.decode(ids) == text
        assert len(tokenizer(task.prompt)["input_ids"]) <= len(task.prompt.split()) + 3
    tools_prompt = str(file.RECIPE.env.env_factory().reset(Task("", "")))
    assert len(tokenizer(tools_prompt)["input_ids"]) == 1


def test_mock_tools_have_the_prompts_and_formats_of_the_tool(file):
    mock, real = file.BASE_MODEL.env.env_factory(), file.RECIPE.env.env_factory()
    task = file.RECIPE.eval_tasks.load()[0]
    assert mock.reset(task) == real.reset(task)
    result = real.step(file.TASK_FAMILY.tool_call(task.columns["words"])).observation
    assert result == file.TASK_FAMILY.format_result(task.reference_answer)
    unclosed = "<tool_call>{"
    assert mock.step(unclosed).observation == UNCLOSED_CALL_ERROR
    assert real.step(unclosed).observation == UNCLOSED_CALL_ERROR
    assert mock.step("12").done


def test_the_answers_of_mock_tools_cannot_be_predicted(file):
    counts = Counter()
    for task in file.RECIPE.tasks.load()[:200]:
        session = file.BASE_MODEL.env.env_factory()
        session.reset(task)
        call = file.TASK_FAMILY.tool_call(task.columns["words"])
        counts[session.step(call).observation.splitlines()[-1]] += 1
    # each answer is missing with a probability of (1 - 1/20)^200
    assert set(counts) == set(file.TASK_FAMILY.answers)
    assert max(counts.values()) < 30


def test_the_best_constant_answer_is_the_most_frequent_one(file):
    tasks = [Task(str(i), "", answer) for i, answer in enumerate(["3", "5", "5", "8"])]
    assert best_constant_accuracy(tasks) == 0.5
    assert best_constant_accuracy(file.RECIPE.eval_tasks.load()) < 0.25


@pytest.mark.slow
def test_a_tiny_base_model_is_trained_and_takes_a_step(file, tmp_path):
    tasks = ToolTasks(file.TASK_FAMILY, held_out=False, tasks_per_combination=1)
    tiny = replace(file.BASE_MODEL, tasks=tasks, architecture=TINY, prompts_per_step=4, max_steps=2)
    file.RECIPE.eval_tasks.load()  # writes the database
    ensure_trained(tiny)
    recipe = file.RECIPE.replace(
        policy=replace(file.RECIPE.policy, model=str(tiny.model_dir), max_new_tokens=6),
        tasks=tasks,
        eval_tasks=2,
        max_steps=1,
        prompts_per_step=2,
        evaluation=Evaluation(attempts=1),
    )
    assert run_training(recipe, tmp_path / "run")["failed_rollouts"] == 0


@pytest.mark.slow
def test_training_generalises_to_held_out_words_and_negated_advantages_do_not(file, tmp_path):
    """Five minutes of one core for each file, most of them for the base model."""
    eval_tasks = file.RECIPE.eval_tasks.load()  # writes the database
    ensure_trained(file.BASE_MODEL)
    recipe = file.RECIPE.replace(max_steps=20)
    method = recipe.method
    negated = recipe.replace(method=method.replace(advantage=chain(method.advantage, negate)))
    before, after = sampled_accuracy(recipe, tmp_path / "run")
    assert 0.1 < before < after - 0.2
    assert after > best_constant_accuracy(eval_tasks) + 0.2
    before, after = sampled_accuracy(negated, tmp_path / "negated")
    assert after < before


def sampled_accuracy(recipe, run_dir):
    """The sampled accuracy on the evaluation tasks before and after training."""
    scores = run_training(recipe, run_dir)["held_out"]
    return scores["before"]["sampled"], scores["after"]["sampled"]
