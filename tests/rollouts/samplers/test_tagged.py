"""Tags before the prompt or before the solution of a demonstration."""

from collections import Counter
from random import Random

from grupo.core.types import Task
from grupo.rollouts.samplers import TaggedDemonstrations, add_tags, without_tags
from grupo.training.update.collate import collate
from grupo.util.event_loop import run_coroutine
from tests.helpers.token_counts import TwoTurnEnv, folder, policy

__all__ = ["folder", "policy"]  # fixtures

TASK = Task("t", "Q", columns={"solution": "ab", "lang": "en", "quality": 5})
TAGS = ("lang", "quality")


def rollout_of(sampler, policy, task=TASK):
    group = run_coroutine(sampler(task, TwoTurnEnv(), policy.actor(3)))
    (rollout,) = group.rollouts
    assert group.task == task
    return rollout


def test_tags_that_are_kept_are_in_the_prompt_and_not_trained(policy):
    rollout = rollout_of(TaggedDemonstrations(TAGS, drop_all=0.0, drop_each=0.0), policy)
    ((prompt, response),) = rollout.turns
    assert (prompt, response.text) == ("<lang=en><quality=5>Q", "ab")
    assert (rollout.reward, rollout.source, response.sampled) == (1.0, "demonstration", False)
    batch = collate([run_coroutine(DROPPED(TASK, TwoTurnEnv(), policy.actor(3)))], policy.encode)
    assert batch.mask.sum() == len("<lang=en><quality=5>ab") + 1  # with the end token
    assert len(response.items) == len("ab") + 1


DROPPED = TaggedDemonstrations(TAGS, drop_all=1.0)


def test_dropped_tags_are_the_beginning_of_the_answer_that_is_learned(policy):
    ((prompt, response),) = rollout_of(DROPPED, policy).turns
    assert (prompt, response.text) == ("Q", "<lang=en><quality=5>ab")
    assert response.in_loss
    never = TaggedDemonstrations(TAGS, drop_all=1.0, infer_prob=0.0)
    ((prompt, response),) = rollout_of(never, policy).turns
    assert (prompt, response.text) == ("Q", "ab")


def test_tags_are_dropped_at_the_two_rates():
    sampler = TaggedDemonstrations(TAGS)
    rng = Random(0)
    count = Counter(frozenset(sampler.split_tags(TASK, rng)[0]) for _ in range(4000))
    # all are dropped with 1/2 + 1/2 * 1/4; a pair is kept with 1/2 * 1/4
    expected = {(): 5 / 8, ("lang",): 1 / 8, ("quality",): 1 / 8, TAGS: 1 / 8}
    for tags, share in expected.items():
        assert abs(count[frozenset(tags)] / 4000 - share) < 0.025


def test_shown_and_learned_tags_are_all_tags_of_the_task():
    for seed in range(50):
        given, inferred = TaggedDemonstrations(TAGS).split_tags(TASK, Random(seed))
        assert {**given, **inferred} == {"lang": "en", "quality": 5}
        assert not {*given} & {*inferred}


def test_a_task_without_a_column_has_no_such_tag(policy):
    task = Task("t", "Q", columns={"solution": "ab", "quality": 5})
    ((_, response),) = rollout_of(DROPPED, policy, task).turns
    assert response.text == "<quality=5>ab"


def test_tags_stand_in_the_first_message_of_the_user():
    chat = ({"role": "system", "content": "S"}, {"role": "user", "content": "Q"})
    tagged = add_tags(Task("t", chat), {"quality": 5}).prompt
    assert tagged == (chat[0], {"role": "user", "content": "<quality=5>Q"})
    assert add_tags(Task("t", chat), {}).prompt == chat


def test_tags_of_an_answer_are_removed():
    assert without_tags("<lang=en><quality=5>a < b", TAGS) == "a < b"
    assert without_tags("<other=1>a", TAGS) == "<other=1>a"
