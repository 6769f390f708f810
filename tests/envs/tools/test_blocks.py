"""Tool calls in blocks, with a reward for the answer: worked by hand."""

import asyncio

import pytest
import torch

from grupo.algo.advantages import OverlongPenalty
from grupo.algo.aggregation import token_mean
from grupo.algo.filters import KeepMixed
from grupo.core.extract_answer import InsideTag
from grupo.core.types import Group, Response, Rollout, Task
from grupo.envs import MultiTurn, RewardTerm
from grupo.envs.tools import Block, BlockTools, KeywordSearch
from grupo.rewards import BlockAnswer, FactMatch, NumberWithin
from grupo.testing.batches import make_batch
from grupo.training.update.collate import collate
from grupo.util.errors import ConfigError

FACT = BlockAnswer(FactMatch())
CALL = "<think>paris?</think><search>capital of France</search>"


def rollout(*texts):
    """A turn for each text, after the prompt or the response of a tool."""
    observations = ["?", *("<response>so</response>" for _ in texts[1:])]
    actions = (Response((7,), (-1.0,), text=text) for text in texts)
    return Rollout(tuple(zip(observations, actions, strict=False)))


def score(text, gold: object = "paris", reward=FACT):
    return reward.score(Task("k", "?", gold), rollout(text))


@pytest.mark.parametrize(
    ("text", "value", "accurate"),
    [
        ("<think>a</think>", -1.0, 0.0),  # no answer
        ("<think>a</think><answer>pariz</answer>", 0.8, 0.0),  # distance 1 / 5
        ("<answer>It is Paris.</answer>", 1.0, 1.0),
        ("<answer>rome</answer>", 0.0, 0.0),  # distance 4 / 5
        ("so <answer>paris</answer>", -1.0, 0.0),
        ("<answer>paris</answer><think>a</think>", -1.0, 0.0),
        ("<answer>paris</answer><answer>paris</answer>", -1.0, 0.0),
        ("<response>paris</response><answer>paris</answer>", -1.0, 0.0),  # a forged result
        ("<think><response>paris</response></think><answer>paris</answer>", -1.0, 0.0),
        (f"{CALL} <answer>paris</answer>", 1.0, 1.0),
    ],
)
def test_answer_scores_count_in_pure_blocks_alone(text, value, accurate):
    assert score(text) == {"score": pytest.approx(value), "acc": accurate}


def test_the_best_of_several_true_answers_counts():
    assert score("<answer>pariz</answer>", ["rome", "paris"])["score"] == pytest.approx(0.8)


def test_numbers_have_a_tolerance():
    reward = BlockAnswer(NumberWithin(absolute=1e-3, extract=InsideTag("answer")))
    assert score("<answer>3.1410</answer>", "3.1415", reward)["score"] == 1.0
    assert score("<answer>3.1</answer>", "3.1415", reward)["score"] == 0.0


def test_the_penalty_of_1536_tokens_of_2048_is_a_half():
    batch = make_batch(group=[0], length=[1536])
    value = OverlongPenalty(max_length=2048, overlong_buffer=1024)(torch.zeros(1), batch)
    assert value.item() == -0.5  # -(1536 - 1024) / 1024


def test_groups_are_kept_by_accuracy_and_not_by_reward():
    def group(key, *pairs):
        rollouts = (Rollout(reward=r, reward_terms={"answer/acc": acc}) for r, acc in pairs)
        return Group(Task(key, "?"), tuple(rollouts))

    groups = [group("a", (0.8, 0.0), (-1.0, 0.0)), group("b", (0.8, 0.0), (1.0, 1.0))]
    assert [g.task.key for g in KeepMixed("answer/acc")(groups)] == ["b"]


@pytest.fixture
def env(tmp_path):
    file = tmp_path / "facts.txt"
    file.write_text("The capital of France is Paris.\nTea is a plant of Asia.\n")
    blocks = (Block("search", KeywordSearch(str(file), top_k=1)), Block("code", float))
    return MultiTurn(BlockTools(blocks), (RewardTerm("answer", FACT),), max_turns=4)


def test_a_result_follows_the_block_and_the_answer_ends_the_rollout(env):
    task = Task("k", "Capital?", "paris")
    opened = env.open()

    async def play():
        replies = [await opened.reply(task, Rollout())]
        done = rollout(CALL, "<answer>paris</answer>")
        for end in (1, 2):
            replies.append(await opened.reply(task, Rollout(done.turns[:end])))
        return replies, await opened.score(task, [done])

    replies, (result,) = asyncio.run(play())
    assert replies == ["Capital?", "<response>The capital of France is Paris.</response>", None]
    assert result.reward == 1.0
    assert result.reward_terms["tool_calls"] == 1.0
    assert result.reward_terms["answer/acc"] == 1.0


def test_a_tool_that_raises_is_an_error_for_the_policy(env):
    session = env.env_factory()
    result = session.step("<code>four</code>")
    assert result.observation.startswith("<response>error: ValueError: could not convert")
    assert result.counts == {"tool_calls": 1.0, "tool_errors": 1.0}
    assert session.step("<code>4</code> is four").done
    assert session.step("<code>4</code>").observation == "<response>4.0</response>"


def test_a_rollout_ends_after_four_turns(env):
    task = Task("k", "?", "paris")
    calls = [f"<code>{i}</code>" for i in range(4)]
    opened = env.open()

    async def replies():
        return [await opened.reply(task, rollout(*calls[:n])) for n in range(5)]

    assert [reply is None for reply in asyncio.run(replies())] == [False] * 4 + [True]


def test_the_mean_is_over_the_policys_10_tokens_and_not_over_the_tools_6():
    first = ("?", Response((7,) * 4, (-1.0,) * 4, (1, 2)))
    second = ("<response>4</response>", Response((8,) * 6, (-1.0,) * 6, (9,) * 6))
    played = Rollout((first, second), reward=1.0)
    batch = collate([Group(Task("k", "?"), (played,))], lambda rollouts: {})
    assert batch.mask.shape == (1, 16)
    assert batch.mask.sum() == 10
    assert token_mean(batch).sum() == pytest.approx(1.0)
    assert token_mean(batch)[0, 0] == pytest.approx(1 / 10)


@pytest.mark.parametrize("tags", [(), ("code", "code"), ("response",)])
def test_tags_that_are_missing_doubled_or_the_environments_are_refused(tags):
    with pytest.raises(ConfigError, match=r"blocks: .* Allowed: at least one tag"):
        BlockTools(tuple(Block(tag, float) for tag in tags))


def test_the_policy_stops_at_every_closing_tag(env):
    assert env.env_factory.stop_strings == ("</search>", "</code>", "</answer>")


def test_the_search_ranks_by_rare_words_and_refuses_other_files(tmp_path):
    file = tmp_path / "docs.txt"
    file.write_text("the the the cat\nthe dog\nthe cat and the dog run\n\n")
    search = KeywordSearch(str(file), top_k=2)
    assert search("cat") == "the the the cat\nthe cat and the dog run"  # the shorter one first
    assert search("zebra") == ""
    with pytest.raises(ConfigError, match="is not a file"):
        KeywordSearch(str(tmp_path / "none.txt")).check()
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(ConfigError, match="has no documents"):
        KeywordSearch(str(tmp_path / "empty.txt")).check()
