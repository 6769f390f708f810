"""The probability of the true option under a frozen model, after the reasoning."""

from math import exp

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.models.causal_lm import CausalLM
from grupo.rewards.listener import ListenerProbability
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers import tiny_lm

TASK = Task("t", "Q", "cd", columns={"options": ("ab", "cd")})


@pytest.fixture(scope="module")
def listener(tmp_path_factory) -> ListenerProbability:
    folder = tiny_lm.save_model(tmp_path_factory.mktemp("model"))
    return ListenerProbability(CausalLM(str(folder), max_new_tokens=8))


def rollout(text):
    return Rollout((("Q", Response((), (), text=text)),))


def scores(listener, *texts, task=TASK):
    return run_coroutine(listener(task, [rollout(text) for text in texts]))


def test_the_score_is_the_normalised_likelihood_of_the_true_option(listener):
    policy = listener.listener.build()
    actor = policy.actor(0)

    async def logp(option):
        start = await actor.prefill_forced(Rollout(), "Q", "so <answer>")
        before = Rollout().append_turn("Q", start)
        forced = await actor.prefill_forced(before, "", option)
        return sum((await actor.logprobs(before.append_turn("", forced))).logp)

    likelihood = {option: exp(run_coroutine(logp(option))) for option in ("ab", "cd")}
    (value,) = scores(listener, "so <answer>ab</answer>")
    expected = likelihood["cd"] / (likelihood["ab"] + likelihood["cd"])
    assert value["score"] == pytest.approx(expected, abs=1e-5)
    assert value["agrees"] == float(likelihood["ab"] > likelihood["cd"])


def test_the_listener_does_not_read_the_answer(listener):
    first, second = scores(listener, "so <answer>ab</answer>", "so <answer>cd</answer>")
    assert first["score"] == second["score"]
    assert first["agrees"] + second["agrees"] == 1.0


def test_reasoning_without_an_answer_scores_nothing(listener):
    assert scores(listener, "so ab") == [{"score": 0.0, "agrees": 0.0}]


def test_the_options_must_contain_the_reference_answer(listener):
    listener.validate_tasks([TASK])
    for columns in ({}, {"options": ("ab",)}):
        with pytest.raises(ConfigError, match="'cd' among them"):
            listener.validate_tasks([Task("t", "Q", "cd", columns=columns)])
