"""Turn strategies with value heads, and search trees, with a tiny language model."""

from dataclasses import replace
from math import exp, log

import pytest
import torch

from grupo.core.aux_heads import LinearHead
from grupo.core.interfaces import single_response
from grupo.core.private_turns import record_private_turns
from grupo.core.types import Rollout, Task
from grupo.inference.sampling_params import Sampling
from grupo.rollouts.samplers import GroupSampler, TreePairs
from grupo.rollouts.turns import AdvantageRevision, StepBeam, ValueGuided
from grupo.training.update.collate import collate
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine as run
from tests.helpers.scripted_actor import Once
from tests.helpers.tiny_lm import CONTEXT, build_cached

QUESTION = "Well?"


@pytest.fixture
def policy(llama):
    policy = build_cached(llama)
    heads = policy.attach_heads((LinearHead("value"), LinearHead("other"))).heads
    torch.manual_seed(0)
    for head in heads.values():
        torch.nn.init.normal_(head.weight)
    return policy


def test_guided_log_probabilities_are_those_of_the_reweighted_policy(policy):
    actor = policy.actor(3).with_stop(max_new_tokens=4)
    strategy = ValueGuided((("value", 1.0), ("other", -0.5)), top_k=4, beta=0.7)
    guided = run(strategy(actor, Rollout(), QUESTION))
    response = guided.last_response
    before, observation = Rollout(), QUESTION
    for item, logq in zip(response.items, response.logp, strict=True):
        weights = {}
        for token in run(actor.next_tokens(before, observation, 4)):
            state = before.append_turn(observation, token)
            value, other = (run(actor.predict_head(state, name)) for name in ("value", "other"))
            weights[token.items[0]] = exp(token.logp[0] + (value - 0.5 * other) / 0.7)
        assert logq == pytest.approx(log(weights[item] / sum(weights.values())), abs=1e-4)
        count = len(before.last_response.items) + 1 if before.turns else 1
        before, observation = actor.truncate(guided, count), ""
    assert response.text == actor.truncate(guided, len(response.items)).last_response.text


def test_guided_response_has_the_policys_token_limit_and_is_counted(policy):
    actor = policy.actor(3)
    guided = run(ValueGuided(beta=2.0)(actor, Rollout(), QUESTION))
    assert guided.truncated
    assert len(guided.last_response.items) == 16
    # the last request finds the response full, and the engine is not asked
    assert actor.generated_tokens == {"": 16}


def test_all_tokens_and_a_large_beta_are_the_policy(policy):
    guided = run(ValueGuided(top_k=10**6, beta=1e9)(policy.actor(3), Rollout(), QUESTION))
    scores = run(policy.actor(3).logprobs(guided))
    assert guided.last_response.logp == pytest.approx(scores.logp, abs=1e-4)


def test_a_context_without_room_gets_an_empty_response(policy):
    question = "x" * CONTEXT
    for strategy in (ValueGuided(), StepBeam(width=1, samples_per_round=2), AdvantageRevision()):
        guided = run(strategy(policy.actor(3), Rollout(), question))
        plain = run(single_response(policy.actor(3), Rollout(), question))
        assert guided.last_response.items == plain.last_response.items == ()


def test_head_that_the_policy_has_not_is_named(policy):
    for strategy in (ValueGuided((("valu", 1.0),)), StepBeam("valu"), AdvantageRevision("valu")):
        with pytest.raises(ConfigError, match=r"head: 'valu' is no auxiliary head.*value"):
            run(strategy(policy.actor(3), Rollout(), QUESTION))


def test_beam_has_the_highest_value_of_the_answers_that_it_compares(policy):
    strategy = StepBeam(width=1, samples_per_round=6)  # no newline comes: steps are whole answers
    beam = run(strategy(policy.actor(3), Rollout(), QUESTION))
    stepping = policy.actor(3).fork("step", 0, 0).with_stop("\n")
    answers = [run(stepping.fork(i)(Rollout(), QUESTION)) for i in range(6)]
    values = {}
    for answer in answers:
        rollout = Rollout().append_turn(QUESTION, answer)
        state = policy.actor(3).truncate(rollout, len(answer.items) - 1)
        values[answer.items] = run(policy.actor(3).predict_head(state, "value"))
    assert beam.last_response.items == max(values, key=values.__getitem__)


def test_guided_rollouts_are_rows_whose_old_log_probabilities_are_those_of_the_guide(policy):
    group = run(GroupSampler(3, ValueGuided())(Task("t", QUESTION), Once(), policy.actor(5)))
    batch = collate([group], policy.encode)
    assert batch.signals["off_context"][batch.mask].all()
    expected = [p for r in group.rollouts for p in r.last_response.logp]
    assert batch.old_logp[batch.mask].tolist() == pytest.approx(expected, abs=1e-5)


def test_siblings_are_trained_in_the_context_in_which_they_were_sampled(llama):
    policy = build_cached(replace(llama, sampling=Sampling(temperature=0.3)))
    sampler = TreePairs(iterations=10, branches=4, max_depth=3, step_end="e")
    env = Once(lambda text: text.count("a") - text.count("b"))
    group = run(sampler(Task("t", QUESTION), env, policy.actor(5)))
    assert len(group.rollouts) >= 2
    batch = collate([group], policy.encode)
    logp = policy.signals(batch, ("logp",)).logp
    torch.testing.assert_close(logp[batch.mask], batch.old_logp[batch.mask], atol=1e-4, rtol=0)
    trained = batch.mask.sum(1).tolist()
    assert [n > 0 for n in trained] == [True] * len(group.rollouts)


def test_reconsidered_action_has_the_largest_advantage_of_those_that_it_compares(policy):
    strategy = AdvantageRevision(
        threshold=1e6, max_revisions=4, revision_prompt="{task}{answer}{advantage}"
    )
    actor = policy.actor(3).with_stop(max_new_tokens=3)
    with record_private_turns() as private:
        rollout = run(strategy(actor, Rollout(), QUESTION))
    before = run(actor.predict_head(actor.truncate(rollout, 0), "value"))
    behind = run(actor.predict_head(actor.truncate(rollout, 2), "value"))
    advantages = [float(turn.label.rpartition(" ")[2]) for turn in private]
    assert len(advantages) == 5
    assert behind - before == pytest.approx(max(advantages), abs=0.006)
