"""Choices among given texts: the draw, the log-probabilities, and the actors that make them."""

from collections import Counter
from dataclasses import replace
from math import log
from random import Random

import pytest
import torch

from grupo.algo.losses import Reinforce
from grupo.core.types import Rollout
from grupo.method import Method
from grupo.models.flow import Flow
from grupo.models.role_actor import RoleActor
from grupo.models.text_choice import draw_text
from grupo.training.update.gradients import accumulate_gradients
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers import tiny_flow, tiny_lm

MODES = {"</think>": 0.25, "<think>": 0.75}


def letters(text):
    return tuple(map(ord, text))


def choose(actor, probabilities, prompt="Hi"):
    return run_coroutine(actor.choose(Rollout(), prompt, probabilities))


def test_texts_are_drawn_with_the_given_probabilities():
    rng = Random(0)
    drawn = Counter(
        draw_text({"a": 0.2, "b": 0.0, "c": 0.8}, letters, rng).text for _ in range(4000)
    )
    assert drawn["b"] == 0
    assert drawn["a"] / 4000 == pytest.approx(0.2, abs=0.02)  # 3 standard deviations: 0.019


@pytest.mark.parametrize(
    ("probabilities", "expected"),
    [
        # of one text, the first token has the whole probability, later tokens are certain
        ({"xy": 0.3, "ab": 0.7}, {"xy": [0.3, 1.0], "ab": [0.7, 1.0]}),
        # "a" begins 3/4 of the mass, and "b" follows it in 2/3 of that
        ({"ab": 0.5, "ac": 0.25, "d": 0.25}, {"ab": [3 / 4, 2 / 3], "ac": [3 / 4, 1 / 3]}),
    ],
)
def test_a_tokens_logp_is_conditional_and_their_sum_is_the_texts(probabilities, expected):
    choices = [draw_text(probabilities, letters, Random(seed)) for seed in range(30)]
    assert {choice.text for choice in choices} == set(probabilities)
    for text, _, logp in choices:
        assert sum(logp) == pytest.approx(log(probabilities[text]))
        if text in expected:
            assert logp == pytest.approx([log(p) for p in expected[text]])


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ({"a": 0.5, "b": 0.4}, "sum is 1"),
        ({"a": 1.5, "b": -0.5}, "at least 0"),
        ({"a": 0.5, "ab": 0.5}, "'a' is the beginning of 'ab' in tokens"),
        ({"": 1.0}, "texts with a token"),
        ({}, "sum is 1"),
    ],
)
def test_choices_that_cannot_be_drawn_are_errors(probabilities, message):
    with pytest.raises(ConfigError, match=message):
        draw_text(probabilities, letters, Random(0))


def test_a_causal_actor_draws_from_its_own_stream_and_generates_nothing(llama):
    policy = tiny_lm.build_cached(llama)
    actor = policy.actor(3)
    actions = [choose(actor.fork(i), MODES) for i in range(40)]
    assert actions == [choose(policy.actor(3).fork(i), MODES) for i in range(40)]
    assert {action.text for action in actions} == set(MODES)
    for action in actions:
        assert action.sampled
        assert action.in_loss
        assert action.off_context
        assert sum(action.logp) == pytest.approx(log(MODES[action.text]))
    assert sum(actor.generated_tokens.values()) == 0
    by_role = RoleActor({"": actor})
    assert choose(by_role.fork(0), MODES) == choose(actor.fork(0), MODES)


def test_the_policy_continues_a_chosen_text(llama):
    actor = tiny_lm.build_cached(llama).actor(3)
    rollout = Rollout().append_turn("Hi", choose(actor, {"So": 1.0}))
    answer = run_coroutine(actor(rollout, ""))
    assert rollout.append_turn("", answer).text == "So" + answer.text
    assert sum(actor.generated_tokens.values()) == len(answer.items)


def test_the_ratio_of_a_chosen_text_is_the_policys_probability_by_the_given_one(llama):
    policy = llama.build()
    actor = policy.actor(3)
    chosen = [choose(actor.fork(i), MODES) for i in range(8)]
    rollouts = [Rollout(reward=1.0).append_turn("Hi", action) for action in chosen]
    batch = tiny_lm.batch_of(policy, rollouts)
    log_ratio = ((policy.signals(batch).logp - batch.old_logp) * batch.mask).sum(1)
    scored = [
        sum(run_coroutine(actor.logprobs(replace(rollout, reward=0.0))).logp)
        for rollout in rollouts
    ]
    expected = [s - log(MODES[action.text]) for s, action in zip(scored, chosen, strict=True)]
    torch.testing.assert_close(
        log_ratio.double(), torch.tensor(expected).double(), atol=1e-4, rtol=0
    )
    # a given distribution is no mismatch between engine and trainer
    metrics = accumulate_gradients(policy, Method(loss=Reinforce()), batch)
    assert metrics.get("sampler_mismatch/logp_diff_max", 0.0) == 0.0


def test_a_flow_chooses_no_text(tmp_path):
    flow = Flow(tiny_flow.save_model(tmp_path))
    with pytest.raises(ConfigError, match="it inserts the text '</think>'"):
        choose(flow.build().actor(0), MODES)
