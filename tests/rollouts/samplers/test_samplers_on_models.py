"""What samplers make of a language model is what it is asked of again when it learns."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from grupo.core.batch import Batch
from grupo.core.types import Group, Task
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.rollouts.samplers import (
    EarlyExits,
    EntropyBranching,
    GroupSampler,
    Sampler,
    SegmentTree,
    SingleStepBranching,
    SplitTree,
    WithAnswerBelief,
)
from grupo.rollouts.turns import ChunkedThinking, ThinkingBudget
from grupo.training.collate import collate
from tests.helpers import tiny_lm
from tests.helpers.engine_requests import record_model_calls
from tests.helpers.scripted_actor import Once

ASKED = Task("t", "What would you say?")
SAMPLERS: dict[str, Sampler] = {
    "budgets": GroupSampler(
        4, ThinkingBudget(thinking_tokens=4, answer_tokens=5, think_end="</think>")
    ),
    "chunks": GroupSampler(
        4, ChunkedThinking(chunk_size=6, prefix_tokens=1, suffix_tokens=2, max_chunks=3)
    ),
    "exits": EarlyExits(num_exits=3, instruction=" So:", think_end="</think>"),
    "segments": SegmentTree(
        leaves=6, segment_tokens=3, max_depth=3, branches=2, max_initial_branches=2
    ),
    "splits": SplitTree(split_steps=(0, 2, 5)),
}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> CausalPolicy:
    folder = tiny_lm.save_model(tmp_path_factory.mktemp("model"))
    return CausalLM(str(folder), max_new_tokens=12).build()


def sample(sampler: Sampler, policy: CausalPolicy, key: int = 3) -> Group:
    return asyncio.run(sampler(ASKED, Once(), policy.actor(key)))


def batch_of(policy: CausalPolicy, group: Group) -> Batch:
    return collate([group], policy.encode)


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_learner_finds_every_log_probability_that_the_sampler_told(policy, name):
    group = sample(SAMPLERS[name], policy)
    batch = batch_of(policy, group)
    again = policy.signals(batch).logp
    torch.testing.assert_close(again[batch.mask], batch.old_logp[batch.mask], atol=2e-5, rtol=0)
    drawn = sum(len(a.items) for r in group.rollouts for _, a in r.turns if a.sampled)
    assert int(batch.mask.sum()) == drawn  # all that was drawn is learned, and nothing else
    assert (batch.old_logp[batch.mask] < 0).all()


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_group_is_the_same_whoever_is_asked_beside_it(policy, name):
    async def beside() -> Group:
        acts = [policy.actor(key) for key in (3, 8, 9)]
        groups = (SAMPLERS[name](ASKED, Once(), act) for act in acts)
        return (await asyncio.gather(*groups))[0]

    def said(group: Group) -> list[list[tuple]]:
        return [[(a.observation, a.items, a.rng_key) for _, a in r.turns] for r in group.rollouts]

    alone = sample(SAMPLERS[name], policy)
    assert said(asyncio.run(beside())) == said(alone)
    assert len({r.text for r in alone.rollouts}) > 1


def test_of_a_path_left_once_the_drawn_token_is_learned_and_found_again(policy):
    group = sample(SingleStepBranching(branches_per_step=2, branch_steps=(0, 3)), policy)
    batch = batch_of(policy, group)
    again = policy.signals(batch).logp
    torch.testing.assert_close(again[batch.mask], batch.old_logp[batch.mask], atol=2e-5, rtol=0)
    assert batch.mask.nonzero()[:, 1].tolist() == [0, 0, 3, 3]


def read(policy: CausalPolicy, work: Callable[[], Group]) -> tuple[Group, int]:
    """What came of it, and how many tokens of prompts the model read for it."""
    with record_model_calls(policy) as calls:
        group = work()
    return group, sum(call.num_tokens for call in calls if call.is_prefill)


def test_no_segment_of_a_tree_is_read_twice(tmp_path):
    policy = CausalLM(str(tiny_lm.save_model(tmp_path / "model")), max_new_tokens=12).build()
    group, count = read(policy, lambda: sample(SAMPLERS["segments"], policy))
    prompt = len(group.rollouts[0].turns[0][1].observation)
    begun = {a.rng_key for r in group.rollouts for _, a in r.turns[:-1]}
    assert count == prompt + len(begun)  # of each that goes on its last token, which was said
    assert sum(len(r.turns) - 1 for r in group.rollouts) > len(begun)


def test_of_a_cut_thought_only_what_is_forced_is_read(tmp_path):
    policy = CausalLM(str(tiny_lm.save_model(tmp_path / "model")), max_new_tokens=12).build()
    group, count = read(policy, lambda: sample(SAMPLERS["exits"], policy))
    *early, _ = group.rollouts
    prompt, forced = (
        len(x) for x in (early[0].turns[0][1].observation, early[0].turns[1][1].items)
    )
    assert count <= prompt + len(early) * (1 + forced) + 1


def test_a_cut_thought_says_what_is_left_of_it(policy):
    group = sample(SAMPLERS["exits"], policy)
    *early, whole = group.rollouts
    thought = whole.turns[0][1]
    for rollout in early:
        cut = rollout.turns[0][1]
        n = len(cut.items)
        assert (cut.items, cut.logp) == (thought.items[:n], thought.logp[:n])
        assert cut.text == policy.chat_tokenizer.decode(thought.items[:n])
        assert rollout.turns[1][1].text == " So:</think>"


def test_texts_of_segments_join_as_their_tokens_do(policy):
    language = policy.chat_tokenizer
    for rollout in sample(SAMPLERS["segments"], policy).rollouts:
        assert rollout.text == language.decode([x for _, a in rollout.turns for x in a.items])


def test_chunks_end_to_end_keep_the_context_within_its_bounds(policy):
    group = sample(SAMPLERS["chunks"], policy)
    batch = batch_of(policy, group)
    prompt = len(group.rollouts[0].turns[0][1].observation)
    assert int(batch.inputs["length"].max()) <= prompt + 6
    rows = [row for r in group.rollouts for row in r.contexts]
    assert [r.turns[0][1].observation[prompt:] for r in rows if r.turns[0][1].resets_context] == [
        (*r.turns[0][1].items[:1], *[x for _, a in r.turns[:i] for x in a.items][-2:])
        for r in group.rollouts
        for i in range(1, len(r.turns))
    ]


class Twice(Once):
    """Speaks twice."""

    async def reply(self, task, rollout):
        return ("Hi!", "And?", None)[len(rollout.turns)]


def test_branches_are_learned_as_they_were_drawn_and_share_what_they_took_over(policy):
    sampler = EntropyBranching(leaves=6, initial_rollouts=2, branch_prob=9.0, entropy_tokens=4)
    group = asyncio.run(sampler(ASKED, Twice(), policy.actor(3)))
    batch = batch_of(policy, group)
    again = policy.signals(batch).logp
    torch.testing.assert_close(again[batch.mask], batch.old_logp[batch.mask], atol=2e-5, rtol=0)
    first = [rollout.turns[0][1] for rollout in group.rollouts]
    assert len({action.rng_key for action in first}) == 3  # two were branched from, and a third
    assert len({rollout.turns[1][1].rng_key for rollout in group.rollouts}) == 6


def test_beliefs_are_those_of_a_plain_forward(policy):
    task, sampler = (
        replace(ASKED, reference_answer="forty"),
        WithAnswerBelief(GroupSampler(2), answer_prefix=" So: "),
    )
    rollout = asyncio.run(sampler(task, Twice(), policy.actor(3))).rollouts[1]
    (_, said), (_, second) = rollout.turns
    answer, lead = (
        policy.chat_tokenizer.encode_forced("forty"),
        policy.chat_tokenizer.encode_forced(" So: "),
    )
    context = (*said.observation, *said.items, *second.observation, *lead, *answer)
    with tiny_lm.dense_attention(policy) as model, torch.no_grad():
        logp = model(torch.tensor([context])).logits[0].log_softmax(-1)[-6:-1]
    mean = logp.gather(1, torch.tensor(answer)[:, None]).mean()
    assert rollout.step_values["belief"][-1] == pytest.approx(mean.exp().item(), rel=1e-4)
    assert rollout.step_values["belief"][0] != rollout.step_values["belief"][-1]
