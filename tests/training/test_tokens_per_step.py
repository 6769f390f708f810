"""Rollouts that are generated in several steps: the same answers, with bounded staleness."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from transformers import LlamaForCausalLM

from grupo.algo.filters import keep_nonzero_std
from grupo.config.staleness import staleness_limits
from grupo.core.types import Response, Rollout
from grupo.envs import MultiTurn, RewardTerm, SingleTurn
from grupo.method import Method
from grupo.recipe import Recipe
from grupo.rollouts.curricula import ShuffledTasks, UncertaintyAllocation
from grupo.rollouts.samplers import GroupSampler, ResampleUntilInformative
from grupo.rollouts.samplers.multi_temperature import MultiTemperature
from grupo.training.learner import Learner
from tests.helpers.fast_cases import fast_cases
from tests.helpers.limited_recipes import LIMIT, STEPS, limited
from tests.helpers.training_components import (
    METHOD,
    LetterGame,
    fine,
    same,
    save_models,
)

CONSTANT = {
    "method": METHOD.replace(filter=keep_nonzero_std),
    "env": SingleTurn((RewardTerm("same", same),)),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_models(folder)
    return str(folder)


def trained(recipe: Recipe):
    """The groups that each step trained on, and the weights before each step."""
    learner = Learner(recipe)
    groups, weights = [], []
    for _ in range(recipe.max_steps):
        weights.append({n: w.clone() for n, w in learner.policy.weights().items()})
        groups.append(learner.step().collected.sampled_groups)
    learner.close()
    return learner, groups, weights


def rollouts_by_stream(groups) -> dict[tuple[int, ...], Rollout]:
    """Every rollout by the random streams of its responses."""
    rollouts = [rollout for step in groups for group in step for rollout in group.rollouts]
    return {tuple(a.rng_key for _, a in rollout.turns): rollout for rollout in rollouts}


def responses(groups) -> list[Response]:
    rollouts = (rollout for group in groups for rollout in group.rollouts)
    return [response for rollout in rollouts for _, response in rollout.turns]


@pytest.mark.slow
def test_rollouts_that_miss_the_group_that_they_extend_are_a_group_of_their_own(model):
    curriculum = UncertaintyAllocation(ShuffledTasks(), 2, 4, phases=1)
    method = METHOD.replace(curriculum=curriculum, sampler=GroupSampler(2))
    learner = Learner(limited(model, 2, 2, method=method))
    late = 0
    for _ in range(STEPS):
        collected = learner.step().collected
        num_sampled = sum(len(group.rollouts) for group in collected.sampled_groups)
        assert num_sampled == len(collected.rank_of_rollout)  # all that ended in this step
        late += sum(group.rng_label[0] > 0 for group in collected.unfinished_groups)
    learner.close()
    assert late > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler",
    fast_cases(
        1,
        [
            GroupSampler(4),
            ResampleUntilInformative(GroupSampler(4), 3),
            MultiTemperature(GroupSampler(2), 2, 1.5),
        ],
    ),
    ids=repr,
)
@pytest.mark.parametrize("tokens_per_step", fast_cases([2], [1, 2, 4]))
def test_with_the_same_weights_rollouts_are_those_of_one_step(model, sampler, tokens_per_step):
    method = Method(sampler=sampler, filter=keep_nonzero_std)
    changes = {**CONSTANT, "method": method, "max_steps": 24}
    _, whole, _ = trained(limited(model, 0, 0, **changes))
    _, parts, _ = trained(limited(model, tokens_per_step, 20, **changes))
    expected = rollouts_by_stream(whole)
    generated = rollouts_by_stream(parts)
    assert len(generated) > len(expected) / 6
    for streams, rollout in generated.items():
        assert rollout.text == expected[streams].text
        assert rollout.reward == expected[streams].reward
        for (_, response), (_, other) in zip(rollout.turns, expected[streams].turns, strict=True):
            assert response.items == other.items
            assert response.finish_reason == other.finish_reason
            assert response.logp == pytest.approx(other.logp, abs=1e-6)  # recorded in float32


@pytest.mark.slow
def test_groups_are_trained_in_the_step_in_which_their_longest_rollout_ends(model):
    _, groups, _ = trained(limited(model, 2, 2, **CONSTANT))
    for step, ended in enumerate(groups):
        for group in ended:
            first = min(response.policy_version for response in responses([group]))
            longest = max(rollout.length for rollout in group.rollouts)
            assert step - first == -(-longest // 2) - 1
    lengths = Counter(rollout.length for step in groups for g in step for rollout in g.rollouts)
    assert max(lengths) == LIMIT  # some groups need three steps
    assert [len(step) for step in groups][:2] != [2, 2]


@pytest.mark.slow
def test_groups_that_end_in_one_step_are_in_the_order_in_which_they_began(model):
    _, groups, _ = trained(limited(model, 2, 2))
    for ended in groups:
        begun = [min(a.policy_version for a in responses([group])) for group in ended]
        assert begun == sorted(begun)


@pytest.mark.slow
def test_log_probabilities_are_those_of_the_weights_that_sampled_each_token(model):
    _, groups, weights = trained(limited(model, 2, 2))
    in_parts = [response for step in groups for response in responses(step) if response.later_parts]
    assert len(in_parts) > 8
    reference = LlamaForCausalLM.from_pretrained(model, dtype=torch.float64)
    for response in in_parts:
        tokens = torch.tensor([(*response.observation, *response.items)])
        start = len(response.observation)
        sampled = zip(response.items, response.logp, response.item_versions, strict=True)
        for place, (token, logp, version) in enumerate(sampled):
            reference.load_state_dict(weights[version], strict=False)
            with torch.no_grad():
                logits = reference(tokens[:, : start + place]).logits[0, -1]
            assert logits.log_softmax(0)[token].item() == pytest.approx(logp, abs=1e-6)
    assert {version for response in in_parts for version in response.item_versions} > {0, 1, 2}


@pytest.mark.parametrize(
    ("tokens", "staleness"), fast_cases(1, [(2, 2), (2, 3), (3, 1), (4, 2), (1, 5)])
)
def test_no_token_is_older_than_max_staleness(model, tokens, staleness):
    _, groups, _ = trained(limited(model, tokens, staleness))
    ages = [
        step - version
        for step, ended in enumerate(groups)
        for response in responses(ended)
        for version in response.item_versions
    ]
    assert 0 < max(ages) <= staleness


@pytest.mark.slow
def test_rollouts_of_several_turns_end_in_the_last_step_that_max_staleness_allows(model):
    env = MultiTurn(LetterGame, max_turns=5)  # up to 30 tokens
    _, groups, _ = trained(limited(model, 3, 1, env=env))
    ages = {
        step - version
        for step, ended in enumerate(groups)
        for response in responses(ended)
        for version in response.item_versions
    }
    assert ages == {0, 1}
    assert max(rollout.length for step in groups for g in step for rollout in g.rollouts) > 6


class CountingReward:
    """Counts how often each text is scored."""

    def __init__(self) -> None:
        self.counts = Counter[tuple[str, str]]()

    def __call__(self, task, rollout):
        self.counts[task.key, rollout.text] += 1
        return fine(task, rollout)


@pytest.mark.slow
def test_a_rollout_is_scored_once(model):
    reward = CountingReward()
    _, groups, _ = trained(limited(model, 2, 2, env=SingleTurn((RewardTerm("fine", reward),))))
    texts = Counter((g.task.key, r.text) for step in groups for g in step for r in g.rollouts)
    assert reward.counts - texts == Counter({("task 0", "1"): 1})  # the trial before the run
    assert texts - reward.counts == Counter()


@pytest.mark.slow
def test_the_tokens_of_a_step_are_those_that_it_generated(model):
    learner = Learner(limited(model, 2, 2))
    generated = sum(learner.step().metrics["tokens/generated"] for _ in range(STEPS))
    unfinished = learner.state.unfinished_groups
    open_tokens = sum(
        len(reply.reply.tokens) for group in unfinished for reply in group.replies.values()
    )
    learner.close()
    learner, groups, _ = trained(limited(model, 2, 2))
    ended = sum(rollout.length for step in groups for g in step for rollout in g.rollouts)
    assert unfinished
    assert generated == ended + open_tokens


@pytest.mark.slow
def test_a_stop_string_may_begin_in_one_step_and_end_in_the_next(model):
    changes = {**CONSTANT, "max_steps": 8}
    _, groups, _ = trained(limited(model, 0, 0, **changes))
    texts = [response.text for step in groups for response in responses(step)]
    pairs = Counter(text[i : i + 2] for text in texts for i in (1, 3) if len(text) > i + 1)
    stop, _ = pairs.most_common(1)[0]
    whole, parts = (
        trained(recipe.replace(policy=replace(recipe.policy, stop_strings=(stop,))))[1]
        for recipe in (limited(model, 0, 0, **changes), limited(model, 2, 20, **changes))
    )
    expected = rollouts_by_stream(whole)
    stopped = 0
    for streams, rollout in rollouts_by_stream(parts).items():
        response, other = rollout.turns[0][1], expected[streams].turns[0][1]
        assert (response.items, response.finish_reason) == (other.items, other.finish_reason)
        stopped += response.finish_reason == "stop" and bool(response.later_parts)
    assert stopped


def test_answers_that_need_fewer_steps_leave_one_step_ahead(model):
    schedules = [staleness_limits(limited(model, 2, s)) for s in (2, 3, 6)]
    assert [(s.steps_ahead, s.max_later_steps) for s in schedules] == [(0, 2), (1, 2), (1, 5)]
    without = staleness_limits(limited(model, 0, 3))
    assert (without.steps_ahead, without.max_later_steps) == (3, 0)
