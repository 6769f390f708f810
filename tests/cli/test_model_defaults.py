"""`grupo compare` and `grupo eval` choose values for a model as `grupo train` does."""

from pathlib import Path

import pytest

from grupo.cli.build_experiment import ExperimentArgs

ROOM = "policy.max_new_tokens = 32: the room in a context of 64 tokens"


@pytest.fixture
def compared(grupo, home, monkeypatch, capsys):
    """Lengths of answers by method, and the lines on standard error."""
    monkeypatch.chdir(home)

    def build(*methods: str, fields: tuple[str, ...] = ()) -> tuple[dict[str, int], list[str]]:
        comparison = ExperimentArgs(
            fields,
            methods,
            tasks=("tasks.jsonl",),
            rewards=("rewards.py:digits",),
            model="model",
            budget="steps=1",
        )(Path("c"))
        lengths = {name: r.policy.max_new_tokens for name, r in comparison.recipes.items()}
        return lengths, capsys.readouterr().err.splitlines()

    return build


def test_compared_methods_have_the_answer_length_that_fits_the_model(compared):
    assert compared("grpo", "rloo") == ({"grpo": 32, "rloo": 32}, [ROOM])


def test_compared_methods_share_the_answer_length_that_one_of_them_is_made_for(compared):
    lengths, lines = compared("grpo", "long=dapo(max_length=16, overlong_buffer=4)")
    assert lengths == {"grpo": 16, "long": 16}
    reason = "the length of an answer that long is made for"
    assert lines == [f"policy.max_new_tokens = 16: {reason}"]


def test_a_length_that_only_some_methods_get_is_printed_with_their_names(compared):
    methods = [f"dapo(max_length={length}, overlong_buffer=4)" for length in (8, 16)]
    lengths, lines = compared(*(f"d{i}={text}" for i, text in enumerate(methods)))
    assert lengths == {"d0": 8, "d1": 16}
    assert [line.partition(":")[0] for line in lines] == ["d0", "d1"]


def test_a_length_that_is_given_applies_to_all_methods(compared):
    fields = ("--policy.max-new-tokens", "5")
    assert compared("grpo", "rloo", fields=fields) == ({"grpo": 5, "rloo": 5}, [])


def test_eval_of_a_model_prints_the_answer_length_that_it_chose(grupo):
    options = ("--tasks", "tasks.jsonl", "--reward", "rewards.py:digits")
    code, _, err = grupo("eval", "--model", "model", *options, "--count", "2", "--attempts", "1")
    assert (code, err.splitlines()) == (0, [ROOM])
