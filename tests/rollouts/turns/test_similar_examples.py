"""Shown examples: which ones, in which order, never the task itself; bad files."""

import asyncio
import json
import os

import pytest

from grupo.config.strategies import check_strategy
from grupo.core.types import Rollout
from grupo.core.usage import count_external_usage
from grupo.rollouts.turns import SimilarExamples, Vote
from grupo.toy.quickstart import RECIPE
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import script

ROWS = (
    {"prompt": "capital of Peru", "answer": "Lima", "note": "not Cusco"},
    {"prompt": "capital of France", "answer": "Paris", "note": ""},
    {"prompt": "currency of Peru", "answer": "sol", "note": ""},
    {"prompt": "seven times two", "answer": "14", "note": ""},
    {"prompt": "capital of France", "answer": "Lyon", "note": ""},
)


@pytest.fixture
def examples(tmp_path):
    path = tmp_path / "examples.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return str(path)


def prompt_of(strategy, question):
    actor = script(lambda context, key: ".")
    with count_external_usage() as usage:
        rollout = asyncio.run(strategy(actor, Rollout(), question))
    ((prompt, _), *_) = actor.log
    return prompt, rollout, usage


def test_the_most_similar_examples_stand_before_the_task_best_last(examples):
    prompt, rollout, usage = prompt_of(SimilarExamples(examples, 2), "France capital")
    assert prompt == "capital of Peru\nLima\n\ncapital of France\nParis\n\nFrance capital"
    assert rollout.turns[0][0] == "France capital"
    assert rollout.last_response.observation == tuple("France capital")
    assert rollout.last_response.off_context
    assert usage == {}


def test_the_task_itself_is_never_shown_also_inside_of_a_form(examples):
    for question in ("capital of Peru", "Think. capital of Peru = ?"):
        prompt, _, _ = prompt_of(SimilarExamples(examples, 5), question)
        assert "Lima" not in prompt
        assert "Paris" in prompt


def test_a_form_shows_other_columns(examples):
    prompt, _, _ = prompt_of(SimilarExamples(examples, 1, "Note: {note}\n"), "Peru capital")
    assert prompt == "Note: not Cusco\nPeru capital"


def test_a_task_without_a_similar_example_is_answered_and_counted(examples):
    prompt, _, usage = prompt_of(SimilarExamples(examples), "xyz")
    assert prompt == "xyz"
    assert usage == {"examples/none": 1}


def test_a_changed_file_is_read_again(examples, tmp_path):
    prompt_of(SimilarExamples(examples), "Peru")
    path = tmp_path / "examples.jsonl"
    path.write_text(json.dumps({"prompt": "about Peru", "answer": "new"}) + "\n")
    os.utime(path, ns=(1, 1))
    assert prompt_of(SimilarExamples(examples), "Peru")[0] == "about Peru\nnew\n\nPeru"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"file": "examples.json"}, r"SimilarExamples\.file: .*examples\.json"),
        (
            {"example_form": "{promt}"},
            r"SimilarExamples\.example_form: \{promt\}: example 1 .*Did you mean 'prompt'",
        ),
        (
            {"example_form": "{completion}"},
            r"SimilarExamples\.example_form: \{completion\}.*Allowed: ",
        ),
        ({"count": 0}, r"SimilarExamples\.count: 0\. Allowed: 1 or more"),
    ],
)
def test_bad_input_is_named_before_the_run(examples, fields, message):
    with pytest.raises(ConfigError, match=message):
        check_strategy(
            "strategy", Vote(2, inner=SimilarExamples(**{"file": examples} | fields)), RECIPE
        )


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "none.jsonl").write_text("")
    with pytest.raises(ConfigError, match=r"SimilarExamples\.file"):
        SimilarExamples(str(tmp_path / "none.jsonl")).check()
