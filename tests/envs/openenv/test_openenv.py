"""Environments of OpenEnv, in real servers on a loopback port."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

pytest.importorskip("openenv", reason="OpenEnv is not installed: make test-adapters")

from grupo.core.types import Rollout, Task
from grupo.envs import FallbackReward, MultiTurn
from grupo.envs.games import EndEpisode, RepeatObservation
from grupo.envs.openenv import OpenEnv, OpenEnvTasks, local_server
from grupo.util.errors import ConfigError
from tests.helpers.http_serving import stop
from tests.helpers.openenv_server import (
    Echo,
    EchoAction,
    EchoObservation,
    MoveAction,
    MoveObservation,
    Moves,
    served,
)
from tests.helpers.scripted_play import play, response

TASK = Task("key", "", columns={"reset": {"seed": 7}})
WAIT_SECONDS = 10.0
ECHO_TOKEN = "q7TzLw3kVb9XyRm2Hd"


@pytest.fixture(scope="module")
def echo_url():
    with served(Echo, EchoAction, EchoObservation) as (url, _):
        OpenEnv(url).check()  # the first import of the client exceeds the time limit of a reset
        yield url


@pytest.fixture(scope="module")
def moves_url():
    with served(Moves, MoveAction, MoveObservation) as (url, _):
        yield url


def echo(url, **fields):
    """The environment, with the counts of sessions set to 0."""
    wait_until_closed()
    Echo.opened = 0
    return MultiTurn(OpenEnv(url), **fields)


def wait_until_closed():
    """Wait until the server has closed all sessions; it does so in its own threads."""
    deadline = time.monotonic() + WAIT_SECONDS
    while Echo.open_sessions and time.monotonic() < deadline:
        time.sleep(0.01)
    assert Echo.open_sessions == 0


def observations(rollout):
    return [observation for observation, _ in rollout.turns]


def test_the_server_answers_until_it_is_done(echo_url):
    (rollout,) = play(echo(echo_url), ["hello", "end"], task=TASK)
    assert observations(rollout) == ["ready 7", "hello 7"]
    assert rollout.step_values["reward"] == (0, 0, 0, 0, 5, 0, 0, 3)
    terms = {"env_reward": 8.0, "turns": 2.0, "done": 1.0, "invalid_actions": 0.0}
    assert (rollout.reward, rollout.reward_terms) == (8.0, terms)


def test_every_rollout_has_a_connection_of_its_own(echo_url):
    play(echo(echo_url), ["a", "end"], ["b", "end"], ["b", "c", "end"], task=TASK)
    assert Echo.opened == 3
    wait_until_closed()


def test_the_arguments_of_the_reset_are_those_of_the_task(echo_url):
    task = Task("key", "", columns={"reset": {"seed": 3, "greeting": "hi", "unknown": 1}})
    assert observations(play(echo(echo_url), ["end"], task=task)[0]) == ["hi 3"]


def test_tasks_without_a_seed_have_the_one_of_their_key(echo_url):
    def first(key):
        return observations(play(echo(echo_url), ["end"], task=Task(key, ""))[0])

    assert first("a") == first("a") != first("b")


def test_episodes_are_seeds_that_derive_from_the_seed_of_their_source(echo_url):
    tasks = OpenEnvTasks(OpenEnv(echo_url), 3).load()
    seeds = [task.columns["reset"]["seed"] for task in tasks]
    assert len(set(seeds)) == 3
    other = OpenEnvTasks(OpenEnv(echo_url), 3, seed=1).load()
    assert not {task.key for task in tasks} & {task.key for task in other}
    (rollout,) = play(echo(echo_url), ["end"], task=tasks[0])
    assert observations(rollout) == [f"ready {seeds[0]}"]


@pytest.mark.parametrize("texts", [["end"], ["a", "b"], ["raise"], ["hang"]])
def test_the_connection_is_closed_when_the_rollout_is_over(echo_url, texts):
    """It is done, has no turns left, raises, or hangs."""
    play(echo(echo_url, max_turns=2, time_limit=0.3), texts, task=TASK)
    wait_until_closed()


def test_a_step_that_is_cancelled_closes_its_connection(echo_url):
    async def cancel() -> None:
        env = echo(echo_url).open()
        assert await env.reply(TASK, Rollout()) == "ready 7"
        turn = Rollout().append_turn("ready 7", response("hang"))
        step = asyncio.create_task(env.reply(TASK, turn))
        await asyncio.sleep(0.05)
        step.cancel()
        await asyncio.gather(step, return_exceptions=True)

    asyncio.run(cancel())
    wait_until_closed()


def test_an_error_of_the_environment_fails_the_rollout_with_its_cause(echo_url):
    good, bad = play(echo(echo_url), ["end"], ["raise"], task=TASK)
    assert good.error == ""
    assert "the echo broke (code: EXECUTION_ERROR)" in bad.error


def test_an_answer_that_makes_the_server_hang_is_an_answer_error(echo_url):
    good, bad = play(echo(echo_url, time_limit=0.5), ["end"], ["a", "hang"], task=TASK)
    assert (good.error, good.reward) == ("", 3.0)
    assert (bad.error, bad.reward, bad.reward_terms["answer_error"]) == ("", 1.0, 1.0)


def test_a_reset_that_hangs_fails_the_rollout(echo_url):
    task = Task("key", "", columns={"reset": {"stuck": True}})
    (bad,) = play(echo(echo_url, time_limit=0.3), ["end"], task=task)
    assert "did not return within 0.3 s at turn 0" in bad.error


def test_a_server_that_ends_fails_the_rollouts_and_not_with_a_reward_of_0():
    with served(Echo, EchoAction, EchoObservation) as (url, server):

        def render(observation):
            if observation["echoed"].startswith("last"):
                stop(server)
                time.sleep(0.3)  # the connection is closed in another thread
            return observation["echoed"]

        env = MultiTurn(OpenEnv(url, render=render))
        first, second = play(env, ["last", "end"], ["end"], task=TASK)
    assert "ConnectionError: the server closed the connection between two turns" in first.error
    assert "ConnectionError: Failed to connect to ws://127.0.0.1" in second.error
    assert first.reward != 0
    (counted,) = play(MultiTurn(OpenEnv(url), on_failure=FallbackReward(-1.0)), ["end"], task=TASK)
    assert (counted.reward, counted.reward_terms["failed"]) == (-1.0, 1.0)


def test_a_server_without_a_free_session_fails_the_rollout_with_the_cause():
    with served(Echo, EchoAction, EchoObservation, sessions=1) as (url, _):
        held = OpenEnv(url)()
        held.reset(TASK)
        (rollout,) = play(MultiTurn(OpenEnv(url)), ["end"], task=TASK)
        held.close()
    assert "code: CAPACITY_REACHED" in rollout.error


def test_actions_of_several_fields_are_json_and_described(moves_url):
    (rollout,) = play(MultiTurn(OpenEnv(moves_url)), ['{"row": 0, "column": 2}'], task=TASK)
    first = observations(rollout)[0]
    assert first.startswith('Answer with a JSON object of this schema: {"properties": {"row"')
    assert first.endswith("board: ...\nfree: [0, 1, 2]")
    assert (rollout.reward, rollout.reward_terms["done"]) == (1.0, 1.0)


@pytest.mark.parametrize("text", ["up", "[1]", '{"row": "x"}', '{"row": 0, "column": 1, "z": 1}'])
def test_an_invalid_action_is_counted_and_decided_by_its_policy(moves_url, text):
    env = MultiTurn(OpenEnv(moves_url, invalid_action=RepeatObservation(0.5)), max_turns=1)
    (rollout,) = play(env, [text], task=TASK)
    assert (rollout.error, rollout.reward) == ("", -0.5)
    assert rollout.reward_terms["invalid_actions"] == 1.0
    (ended,) = play(
        MultiTurn(OpenEnv(moves_url, invalid_action=EndEpisode(-1.0))), [text], task=TASK
    )
    assert (ended.reward, ended.reward_terms["done"]) == (-1.0, 1.0)


def test_own_functions_render_observations_and_parse_actions(moves_url):
    def show(observation):
        return ({"role": "user", "content": observation["board"]},)

    def act(text, schema):
        return {"row": int(text), "column": 0}

    env = OpenEnv(moves_url, render=show, parse=act, instructions="Go!")
    (rollout,) = play(MultiTurn(env), ["x", "0"], task=TASK)
    chat = ({"role": "user", "content": "Go!"}, {"role": "user", "content": "..."})
    assert observations(rollout) == [chat, chat[1:]]
    assert (rollout.reward, rollout.reward_terms["invalid_actions"]) == (1.0, 1.0)


def test_the_token_is_sent_and_not_written(monkeypatch):
    monkeypatch.setenv("ECHO_TOKEN", "secret-123")
    requests = []
    with served(Echo, EchoAction, EchoObservation, requests=requests) as (url, _):
        env = OpenEnv(url, token_env="ECHO_TOKEN")
        env.check()
        leak, broken = play(MultiTurn(env, max_turns=2), ["secret-123", "b"], ["raise"], task=TASK)
    sent = {(path, headers.get("authorization")) for path, _, headers in requests}
    assert sent == {("/schema", "Bearer secret-123"), ("/ws", "Bearer secret-123")}
    assert observations(leak)[1] == "[token] 7"
    assert "secret-123" not in f"{env} {observations(leak)} {broken.error}"


@pytest.mark.parametrize("shown", [ECHO_TOKEN, ECHO_TOKEN.encode().hex(" ")])
def test_the_token_is_filtered_in_observations_and_errors_also_encoded(monkeypatch, shown):
    monkeypatch.setenv("ECHO_TOKEN", ECHO_TOKEN)
    with served(Echo, EchoAction, EchoObservation) as (url, _):
        env = OpenEnv(url, token_env="ECHO_TOKEN")
        env.check()
        (leak,) = play(MultiTurn(env, max_turns=2), [shown, "b"], task=TASK)
    assert observations(leak)[1] == "[token] 7"


@pytest.mark.parametrize(
    ("value", "message"),
    [("", "'ECHO_TOKEN' is not set"), ("a b", "no token. Allowed"), ("ü", "no token. Allowed")],
)
def test_a_token_that_cannot_be_sent_is_refused_without_its_value(monkeypatch, value, message):
    monkeypatch.setenv("ECHO_TOKEN", value)
    with pytest.raises(ConfigError, match=message) as error:
        OpenEnv("http://127.0.0.1:1", token_env="ECHO_TOKEN").check()
    assert not value or f"'{value}'" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("127.0.0.1", r"'127.0.0.1'. Allowed: a URL that begins with http://.* module:attribute"),
        ("http://user:word@host", "a user name or a password"),
        ("http://127.0.0.1:1", "has no schema of OpenEnv: ConnectError"),
    ],
)
def test_a_url_without_a_server_of_openenv_is_refused(url, message):
    with pytest.raises(ConfigError, match=message):
        OpenEnv(url).check()


def test_an_application_is_served_by_a_process_that_is_started_again_when_it_has_ended():
    """The import of OpenEnv in the process takes seconds."""
    app = "tests.helpers.openenv_server:APP"
    env = MultiTurn(OpenEnv(app), time_limit=60.0)
    assert observations(play(env, ["end"], task=TASK)[0]) == ["ready 7"]
    server = local_server._server_of(app)
    (guard,) = server.guard_processes
    child = Path(f"/proc/{guard.pid}/task/{guard.pid}/children").read_text()
    os.kill(int(child), signal.SIGKILL)
    guard.wait()
    (again,) = play(env, ["end"], task=TASK)
    assert (again.error, again.reward) == ("", 3.0)
    server.close()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"address": "no_such_module:app"},
            "the server of OpenEnv has not started.*Could not import.*no_such_mod",
        ),
        ({"address": "server.app:app", "token_env": "T"}, "token_env: only a server at a URL"),
    ],
)
def test_an_application_that_cannot_be_served_is_refused(fields, message):
    with pytest.raises(ConfigError, match=message):
        OpenEnv(**fields).check()
