"""Two recipes in which a small model learns to use a tool: what is asked, shown and paid."""

import asyncio
import shutil
from collections import Counter
from dataclasses import replace
from random import Random
from statistics import fmean

import pytest

from grupo.algo.advantages import chain
from grupo.core.errors import ConfigError
from grupo.core.importing import load_module_file
from grupo.core.interfaces import run_rollout, score_group
from grupo.core.types import Action, Task
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
from grupo.training.trainer import train
from tests.helpers.paths import ROOT

AGENTS = ROOT / "recipes" / "agents"
FILES = {name: load_module_file(AGENTS / f"{name}.py") for name in ("atlas", "programs")}
TINY = LlamaArchitecture(hidden_size=16, intermediate_size=32, num_layers=1, num_heads=2)
PERFECT = {"calls": 1.0, "minds": 1.0, "reads": 1.0, "closes": 1.0, "heeds": 1.0}


@pytest.fixture(params=FILES)
def file(request, tmp_path, monkeypatch):
    """A recipe's file, in a folder of its own; programs need bubblewrap."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path / ".grupo"))
    if request.param == "programs":
        if shutil.which("bwrap") is None:
            pytest.skip("bubblewrap is not installed")
        try:
            Python().sandbox.check()
        except ConfigError as refusal:
            pytest.skip(str(refusal))
    return FILES[request.param]


class Speaking:
    """A policy that says what somebody says, and may be recited."""

    def __init__(self, task, speaker, heard=()):
        self.task, self.speaker, self.heard = task, speaker, list(heard)

    async def __call__(self, rollout, seen):
        self.heard.append(seen)
        return Action((7,), (-1.0,), (0,), self.speaker(self.task, self.heard, Random(0)))


def played(env, task, speaker):
    async def work():
        return await score_group(task, env, [await run_rollout(task, env, Speaking(task, speaker))])

    return asyncio.run(work()).rollouts[0]


def test_no_combination_of_words_is_both_trained_on_and_held_out(file):
    words = len([some for some in file.CHOICES if not some[0].isdigit()])
    trained, held_out = (
        {task.columns["words"][:words] for task in source.load()}
        for source in (file.RECIPE.tasks, file.RECIPE.held_out)
    )
    assert not trained & held_out
    share = len(held_out) / len(trained | held_out)
    assert 0.15 < share < 0.35
    for place in range(words):  # yet every word is met in training
        assert {w[place] for w in held_out} <= {w[place] for w in trained}


def test_the_real_tool_says_the_answer_to_the_right_call_and_not_to_a_careless_one(file):
    task = file.RECIPE.held_out.load()[0]
    right = played(file.RECIPE.env, task, NoisyDemonstrator(file.TRADE, **PERFECT))
    assert (right.reward, right.reward_terms["tools"]) == (1.0, 1.0)
    assert right.turns[1][0][0]["content"].splitlines()[-1] == task.answer
    careless = played(
        file.RECIPE.env, task, NoisyDemonstrator(file.TRADE, **(PERFECT | {"minds": 0.0}))
    )
    assert (careless.reward, careless.reward_terms["tools"]) == (0.0, 1.0)


def test_who_guesses_or_does_not_close_the_call_is_not_paid(file):
    task = file.RECIPE.held_out.load()[0]
    knows = played(file.RECIPE.env, task, lambda task, heard, rng: task.answer)
    assert (knows.reward, len(knows.turns)) == (0.0, 1)  # it never asked
    open_call = played(
        file.RECIPE.env, task, NoisyDemonstrator(file.TRADE, **(PERFECT | {"closes": 0.0}))
    )
    assert (open_call.reward_terms["malformed"], open_call.reward) == (1.0, 0.0)


def test_a_novice_is_as_sloppy_as_its_numbers_say(file):
    task, rng = file.RECIPE.tasks.load()[0], Random(1)
    trade, told = file.TRADE, ({"role": "tool", "content": "head\n-5"},)
    novice, count = NoisyDemonstrator(trade), 2000
    said = [novice(task, ["?"], rng) for _ in range(count)]
    called = [text for text in said if "<tool_call>" in text]
    # four standard deviations of a share of 2000 are at most 4 sqrt(0.25 / 2000) = 0.045
    assert len(called) / count == pytest.approx(0.8, abs=0.045)
    assert fmean(text.endswith("</tool_call>") for text in called) == pytest.approx(0.95, abs=0.03)
    mark = {"sql": "WHERE", "python": " if "}[trade.tool]
    assert fmean(mark in text for text in called) == pytest.approx(0.5, abs=0.05)
    heeded = [novice(task, ["?", told], rng) == "-5" for _ in range(count)]
    assert fmean(heeded) == pytest.approx(0.85, abs=0.04)
    failed = ({"role": "tool", "content": "error: no"},)
    assert novice(task, ["?", failed], rng) in trade.answers


def test_every_word_is_a_token_and_nothing_is_unknown(file, tmp_path):
    from transformers import AutoTokenizer

    replace(file.BEGINNER, size=TINY).save_untrained(tmp_path / "start")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "start")
    for task in file.RECIPE.held_out.load():
        call = file.TRADE.call(task.columns["words"])
        for text in (task.prompt, call):
            ids = tokenizer(text)["input_ids"]
            assert tokenizer.unk_token_id not in ids
            assert tokenizer.decode(ids) == text
        assert len(tokenizer(task.prompt)["input_ids"]) <= len(task.prompt.split()) + 3
    told = str(file.RECIPE.env.world().reset(Task("", "")))
    assert len(tokenizer(told)["input_ids"]) == 1


def test_the_beginner_grows_where_tools_are_told_of_and_answer_as_they_do_later(file):
    shown, real = file.BEGINNER.world.world(), file.RECIPE.env.world()
    task = file.RECIPE.held_out.load()[0]
    assert shown.reset(task) == real.reset(task)
    said = real.step(file.TRADE.call(task.columns["words"])).said
    assert said == file.TRADE.told(task.answer)
    unclosed = "<tool_call>{"
    assert shown.step(unclosed).said == real.step(unclosed).said == UNCLOSED_CALL_ERROR
    assert shown.step("12").over


def test_what_is_answered_while_a_beginner_grows_can_only_be_read(file):
    said = Counter()
    for task in file.RECIPE.tasks.load()[:200]:
        session = file.BEGINNER.world.world()
        session.reset(task)
        said[session.step(file.TRADE.call(task.columns["words"])).said.splitlines()[-1]] += 1
    assert set(said) == set(file.TRADE.answers)  # each is missed by a chance of (1 - 1/20)^200
    assert max(said.values()) < 30


def test_the_best_who_never_reads_says_the_most_frequent_answer(file):
    assert (
        best_constant_accuracy(
            [Task(str(i), "", answer) for i, answer in enumerate(["3", "5", "5", "8"])]
        )
        == 0.5
    )
    assert best_constant_accuracy(file.RECIPE.held_out.load()) < 0.25


def test_a_beginner_grows_and_takes_a_step(file, tmp_path):
    tasks = ToolTasks(file.TRADE, held_out=False, tasks_per_combination=1)
    few = replace(file.BEGINNER, tasks=tasks, size=TINY, batch=4, steps=2)
    file.RECIPE.held_out.load()  # draws the atlas
    ensure_trained(few)
    recipe = file.RECIPE.replace(
        policy=replace(file.RECIPE.policy, model=str(few.home), max_new_tokens=6),
        tasks=tasks,
        eval_tasks=2,
        max_steps=1,
        prompts_per_step=2,
        evaluation=Evaluation(attempts=1),
    )
    assert train(recipe, tmp_path / "run")["failed_rollouts"] == 0


@pytest.mark.slow
def test_it_learns_to_ask_what_was_never_asked_and_turned_round_it_does_not(file, tmp_path):
    """Five minutes of one core for each file, most of them for the beginner."""
    ensure_trained(file.BEGINNER)
    recipe = file.RECIPE.replace(max_steps=20)
    turned = recipe.replace(
        method=recipe.method.replace(advantage=chain(recipe.method.credit, negate))
    )
    before, after = sampled(recipe, tmp_path / "run")
    assert 0.1 < before < after - 0.2
    assert after > best_constant_accuracy(file.RECIPE.held_out.load()) + 0.2
    before, after = sampled(turned, tmp_path / "turned")
    assert after < before


def sampled(recipe, run):
    """The share of held-out questions that are answered rightly when sampling, at both ends."""
    scores = train(recipe, run)["held_out"]
    return scores["before"]["sampled"], scores["after"]["sampled"]
