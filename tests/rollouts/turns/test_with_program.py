"""A program before each task: the prompt, the file, bad input."""

import asyncio

import pytest

from grupo.config.strategies import check_strategy
from grupo.core.types import Rollout
from grupo.rollouts.turns import Vote, WithProgram
from grupo.rollouts.turns.with_program import LoadedProgram
from grupo.toy.quickstart import RECIPE
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import script


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.txt"
    path.write_text("\nTake the last word {first}.\n")
    return str(path)


def prompts_of(strategy, observation="Q"):
    actor = script(lambda context, key: ".")
    rollout = asyncio.run(strategy(actor, Rollout(), observation))
    return rollout, [prompt for prompt, _ in actor.log]


def test_the_program_stands_before_the_task_and_its_braces_stay(program):
    rollout, prompts = prompts_of(WithProgram(program, "{program}|{task}"))
    assert prompts == ["Take the last word {first}.|Q"]
    assert rollout.turns[0][0] == "Q"
    assert rollout.last_response.observation == ("Q",)
    assert rollout.last_response.off_context


def test_all_attempts_of_an_inner_strategy_read_it(program):
    _, prompts = prompts_of(WithProgram(program, "{program}|{task}", Vote(3)))
    assert prompts == ["Take the last word {first}.|Q"] * 3


def test_of_a_chat_the_users_last_message_has_it():
    chat = ({"role": "system", "content": "S"}, {"role": "user", "content": "Q"})
    system, user = LoadedProgram("P", "{program}/{task}").prompt(chat)
    assert (system["content"], user["content"]) == ("S", "P/Q")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            None,
            r"WithProgram\.file: There is no file .*\. Did you mean 'program\.txt'",
        ),
        (b" \n", r"WithProgram\.file: '.*programm\.txt' is empty\. Allowed: some text"),
        (b"\xff\xfe\xff", r"WithProgram\.file: '.*programm\.txt' cannot be read: .*utf-8"),
    ],
)
def test_a_file_without_a_program_is_named_before_the_run(text, message, tmp_path, program):
    path = tmp_path / "programm.txt"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(ConfigError, match=message):
        check_strategy("strategy", Vote(2, inner=WithProgram(str(path))), RECIPE)


def test_a_file_beyond_the_limit_is_refused(tmp_path):
    path = tmp_path / "program.txt"
    path.write_bytes(b"a" * 2**20)
    WithProgram(str(path)).check()
    path.write_bytes(b"a" * (2**20 + 1))
    with pytest.raises(ConfigError, match=r"1,048,577 bytes\. Allowed: at most 1,048,576 bytes"):
        WithProgram(str(path)).check()


def test_a_form_without_the_task_is_refused():
    with pytest.raises(ConfigError, match=r"WithProgram\.form: '{program}' lacks {task}"):
        WithProgram("program.txt", "{program}")
