"""Agents behind the API: their calls as turns, their rewards, and what becomes of failures."""

import asyncio

import openai
import pytest

from grupo.core.interfaces import open_env, run_rollout, score_group
from grupo.core.types import Rollout, Task
from grupo.envs import FallbackReward, RewardTerm
from grupo.envs.proxy import ProxyEnv
from grupo.util.errors import ConfigError
from tests.helpers import agents
from tests.helpers.scripted_play import TextActor, play, response

TASK = Task("key", "Which number?", 3)
LENGTH = RewardTerm("length", lambda task, rollout: float(rollout.length))


def observations(rollout):
    return [[m["content"] for m in observation] for observation, _ in rollout.turns]


def continued(rollout):
    return [observation.continues for observation, _ in rollout.turns]


def play_one(harness, *texts, **fields):
    (rollout,) = play(ProxyEnv(harness, **fields), texts, task=TASK)
    return rollout


def test_the_number_that_an_agent_returns_is_the_reward():
    rollout = play_one(agents.ask_once, "7")
    assert observations(rollout) == [["Which number?"]]
    assert (rollout.reward, rollout.text, rollout.error) == (7.0, "7", "")
    assert rollout.reward_terms["calls"] == rollout.reward_terms["contexts"] == 1.0


def test_an_agent_may_be_async():
    assert play_one(agents.converse_async, "2").reward == 2.0


def test_rollouts_of_a_group_have_agents_of_their_own():
    first, second = play(ProxyEnv(agents.ask_once), ["7"], ["8"], task=TASK)
    assert (first.reward, second.reward) == (7.0, 8.0)


def test_messages_that_continue_a_conversation_are_the_new_ones_alone():
    rollout = play_one(agents.converse, "a", "b", "stop", rewards=(LENGTH,))
    assert observations(rollout) == [["Which number?"], ["You wrote a."], ["You wrote b."]]
    assert continued(rollout) == [(), (0,), (0, 1)]
    assert rollout.reward == rollout.reward_terms["length"] == len("abstop")


def test_another_conversation_begins_anew_and_the_first_one_goes_on_where_it_was():
    rollout = play_one(agents.with_sub_agent, "a", "b", "c", rewards=(LENGTH,))
    assert observations(rollout) == [["main"], ["sub"], ["b"]]
    assert continued(rollout) == [(), (), (0,)]


def test_an_agent_that_loops_is_ended_and_its_rollout_scored():
    rollout = play_one(agents.loop_for_ever, *"abcd", rewards=(LENGTH,), max_calls=3)
    assert (rollout.text, rollout.reward, rollout.error) == ("abc", 3.0, "")
    assert rollout.reward_terms["call_limit"] == 1.0


@pytest.mark.parametrize(
    ("harness", "error"),
    [
        (agents.raise_after_call, "the agent raised ValueError: the agent has a bug"),
        (agents.hang_after_call, "neither called the policy nor ended within 2 s"),
        (agents.call_nothing, "the agent ended without a call"),
    ],
)
def test_an_agent_that_fails_loses_its_rollout_with_the_cause(harness, error):
    rollout = play_one(harness, "x", time_limit=2.0)
    assert error in rollout.error
    assert "task key, rollout 0" in rollout.error
    assert rollout.reward != rollout.reward


def test_a_failed_agent_may_have_a_reward():
    rollout = play_one(agents.raise_after_call, "x", on_failure=FallbackReward(-1.0))
    assert (rollout.reward, rollout.reward_terms["failed"]) == (-1.0, 1.0)


class SlowActor(TextActor):
    async def __call__(self, rollout, observation):
        await asyncio.sleep(0.5)
        return await super().__call__(rollout, observation)


def test_a_call_that_its_agent_gives_up_loses_the_rollout():
    async def work():
        env = open_env(ProxyEnv(agents.give_up))
        rollout = await run_rollout(TASK, env, SlowActor("a", "b"))
        return (await score_group(TASK, env, [rollout])).rollouts[0]

    assert "closed the connection of call 1 before its answer" in asyncio.run(work()).error


def test_agents_beyond_the_places_wait_for_one():
    async def work():
        env = open_env(ProxyEnv(agents.ask_once, max_concurrent=1))
        runs = (run_rollout(TASK, env, TextActor(text)) for text in "123")
        return (await score_group(TASK, env, await asyncio.gather(*runs))).rollouts

    assert [rollout.reward for rollout in asyncio.run(work())] == [1.0, 2.0, 3.0]


def test_a_wait_for_a_place_that_never_comes_ends():
    async def work():
        env = open_env(ProxyEnv(agents.ask_once, max_concurrent=1))
        env.slots.time_limit = 0.1
        await env.reply(TASK, Rollout())  # its agent keeps its place and is never answered
        waiting = await run_rollout(TASK, env, TextActor("1"))
        rollout = (await score_group(TASK, env, [waiting])).rollouts[0]
        env.close()
        return rollout

    assert "all places for agents are taken" in asyncio.run(work()).error


def test_a_rollout_that_branches_off_gets_an_agent_of_its_own():
    async def work():
        env = open_env(ProxyEnv(agents.converse, rewards=(LENGTH,)))
        first = await env.reply(TASK, Rollout())
        shared = Rollout().append_turn(first, response("a"))
        second = await env.reply(TASK, shared)
        branches = [shared.append_turn(second, response(text)) for text in ("b", "c")]
        replies = [await env.reply(TASK, branch) for branch in branches]
        ended = [
            branch.append_turn(reply, response("stop"))
            for branch, reply in zip(branches, replies, strict=True)
        ]
        assert [await env.reply(TASK, rollout) for rollout in ended] == [None, None]
        return replies, (await score_group(TASK, env, ended)).rollouts

    replies, rollouts = asyncio.run(work())
    assert [reply[0]["content"] for reply in replies] == ["You wrote b.", "You wrote c."]
    assert [rollout.error for rollout in rollouts] == ["", ""]


def test_tool_calls_arrive_as_openai_names_them_and_continue_the_conversation():
    seen = []

    def harness(task, address):
        messages = [agents.user("2 + 3")]
        choice = agents.ask(address, messages, tools=[agents.ADD])
        call = choice.message.tool_calls[0]
        seen.append((choice.finish_reason, call.function.name, call.function.arguments))
        messages += [
            choice.message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": call.id, "content": "5"},
        ]
        seen.append(agents.ask(address, messages, tools=[agents.ADD]).message.content)

    text = 'I add. <tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>'
    rollout = play_one(harness, text, "5!", rewards=(LENGTH,))
    assert seen == [("tool_calls", "add", '{"a": 2}'), "5!"]
    assert observations(rollout)[0][1:] + observations(rollout)[1] == ["2 + 3", "5"]
    assert '"name": "add"' in rollout.turns[0][0][0]["content"]  # outside of a run the prompt
    assert rollout.reward_terms["tool_calls"] == 1.0


def test_a_streamed_answer_has_the_same_content():
    seen = []

    def harness(task, address):
        with agents.client_of(address) as client:
            events = client.chat.completions.create(
                model="policy",
                messages=[agents.user("go")],
                stream=True,
                stream_options={"include_usage": True},
            )
            chunks = list(events)
        seen.append("".join(c.choices[0].delta.content or "" for c in chunks if c.choices))
        seen.append((chunks[-2].choices[0].finish_reason, chunks[-1].usage.completion_tokens))

    play_one(harness, "hello", rewards=(LENGTH,))
    assert seen == ["hello", ("stop", 5)]


def test_log_probabilities_and_limits_of_length_reach_the_agent_and_the_policy():
    seen = []

    def harness(task, address):
        choice = agents.ask(address, [agents.user("go")], logprobs=True, max_tokens=4, stop="!")
        seen.extend((entry.token, entry.logprob) for entry in choice.logprobs.content)

    rollout = play_one(harness, "ab", rewards=(LENGTH,))
    assert seen == [("token_id:7", -1.0)] * 2
    call = rollout.turns[0][0]
    assert (call.max_new_tokens, call.stop_strings) == (4, ("!",))


def test_options_that_would_change_the_distribution_are_counted():
    def harness(task, address):
        agents.ask(address, [agents.user("go")], temperature=0.2, top_p=1.0)

    terms = play_one(harness, "ab", rewards=(LENGTH,)).reward_terms
    assert terms["not_applied/temperature"] == 1.0
    assert "not_applied/top_p" not in terms


def test_nonsense_is_refused_by_name_and_costs_nothing():
    seen = []

    def harness(task, address):
        for options in ({"n": 2}, {"messages": []}, {"extra_body": {"stop": [1]}}):
            with pytest.raises(openai.BadRequestError) as refusal:
                agents.ask(address, **{"messages": [agents.user("go")], **options})
            seen.append((refusal.value.param, refusal.value.body["message"]))
        return agents.ask_once(task, address)

    rollout = play_one(harness, "1")
    assert (rollout.reward, rollout.reward_terms["calls"]) == (1.0, 1.0)
    assert [param for param, _ in seen] == ["n", "messages", "stop"]
    assert seen[0][1].startswith("n: 2. Allowed: 1;")


@pytest.mark.parametrize(
    ("harness", "message"),
    [
        ("", "not empty"),
        ("python 'agent.py", "No closing quotation"),
        ("python agent.py {baseurl}", "{baseurl} is unknown. Did you mean 'base_url'?"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused(harness, message):
    with pytest.raises(ConfigError, match="harness") as error:
        ProxyEnv(harness)
    assert message in str(error.value)


@pytest.mark.parametrize("harness", ["no_such_program {base_url}", "no_such_file.py:run"])
def test_an_agent_that_is_missing_is_refused_before_the_run(harness):
    with pytest.raises(ConfigError, match="no_such"):
        ProxyEnv(harness).check()
