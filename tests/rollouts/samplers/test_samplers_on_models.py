"""Groups that samplers generate with a language model have the same logp in training."""

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
    GroupPart,
    GroupSampler,
    Sampler,
    SegmentTree,
    SingleStepBranching,
    SplitGroup,
    SplitTree,
    WithAnswerBelief,
)
from grupo.rollouts.turns import ChunkedThinking, ThinkingBudget
from grupo.training.update.collate import collate
from grupo.util.event_loop import run_coroutine
from tests.helpers import tiny_lm
from tests.helpers.engine_requests import record_model_calls
from tests.helpers.scripted_actor import Once

TASK = Task("t", "What would you say?")
SAMPLERS: dict[str, Sampler] = {
    "budgets": GroupSampler(
        4, ThinkingBudget(thinking_tokens=4, answer_tokens=5, think_end="</think>")
    ),
    "chunks": GroupSampler(
        4, ChunkedThinking(chunk_size=6, prefix_tokens=1, suffix_tokens=2, max_chunks=3)
    ),
    "exits": EarlyExits(num_exits=3, instruction=" So:", think_end="</think>"),
    "forced": SplitGroup(4, parts=(GroupPart(0.0, "So", " Why?"), GroupPart(1.0, "No"))),
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
    return run_coroutine(sampler(TASK, Once(), policy.actor(key)))


def batch_of(policy: CausalPolicy, group: Group) -> Batch:
    return collate([group], policy.encode)


@pytest.mark.parametrize("name", SAMPLERS)
def test_training_logp_matches_the_samplers_logp(policy, name):
    group = sample(SAMPLERS[name], policy)
    batch = batch_of(policy, group)
    logp = policy.signals(batch).logp
    torch.testing.assert_close(logp[batch.mask], batch.old_logp[batch.mask], atol=2e-5, rtol=0)
    responses = [response for rollout in group.rollouts for _, response in rollout.turns]
    trained = sum(
        len(response.items) for response in responses if response.sampled or response.in_loss
    )
    assert int(batch.mask.sum()) == trained  # sampled and scored tokens, and no others
    assert (batch.old_logp[batch.mask] < 0).all()


@pytest.mark.parametrize("name", SAMPLERS)
def test_group_does_not_depend_on_concurrent_requests(policy, name):
    async def sample_concurrently() -> Group:
        actors = [policy.actor(key) for key in (3, 8, 9)]
        groups = (SAMPLERS[name](TASK, Once(), actor) for actor in actors)
        return (await asyncio.gather(*groups))[0]

    def responses(group: Group) -> list[list[tuple]]:
        return [[(a.observation, a.items, a.rng_key) for _, a in r.turns] for r in group.rollouts]

    alone = sample(SAMPLERS[name], policy)
    assert responses(run_coroutine(sample_concurrently())) == responses(alone)
    assert len({r.text for r in alone.rollouts}) > 1


def test_only_the_sampled_token_of_a_single_step_branch_is_trained(policy):
    group = sample(SingleStepBranching(branches_per_step=2, branch_steps=(0, 3)), policy)
    batch = batch_of(policy, group)
    logp = policy.signals(batch).logp
    torch.testing.assert_close(logp[batch.mask], batch.old_logp[batch.mask], atol=2e-5, rtol=0)
    assert batch.mask.nonzero()[:, 1].tolist() == [0, 0, 3, 3]


def count_prefilled(policy: CausalPolicy, generate: Callable[[], Group]) -> tuple[Group, int]:
    """The generated group, and the number of tokens that the model prefilled for it."""
    with record_model_calls(policy) as calls:
        group = generate()
    return group, sum(call.num_tokens for call in calls if call.is_prefill)


def test_no_segment_of_a_tree_is_prefilled_twice(tmp_path):
    policy = CausalLM(str(tiny_lm.save_model(tmp_path / "model")), max_new_tokens=12).build()
    group, count = count_prefilled(policy, lambda: sample(SAMPLERS["segments"], policy))
    prompt_length = len(group.rollouts[0].turns[0][1].observation)
    continued = {a.rng_key for r in group.rollouts for _, a in r.turns[:-1]}
    assert count == prompt_length + len(continued)  # only the last token of a continued segment
    assert sum(len(r.turns) - 1 for r in group.rollouts) > len(continued)


def test_only_forced_tokens_are_prefilled_after_a_cut(tmp_path):
    policy = CausalLM(str(tiny_lm.save_model(tmp_path / "model")), max_new_tokens=12).build()
    group, count = count_prefilled(policy, lambda: sample(SAMPLERS["exits"], policy))
    *early, _ = group.rollouts
    prompt_length = len(early[0].turns[0][1].observation)
    forced_length = len(early[0].turns[1][1].items)
    assert count <= prompt_length + len(early) * (1 + forced_length) + 1


def test_cut_thinking_is_a_prefix_of_the_whole_in_tokens_logp_and_text(policy):
    group = sample(SAMPLERS["exits"], policy)
    *early, whole = group.rollouts
    thinking = whole.turns[0][1]
    for rollout in early:
        cut = rollout.turns[0][1]
        n = len(cut.items)
        assert (cut.items, cut.logp) == (thinking.items[:n], thinking.logp[:n])
        assert cut.text == policy.chat_tokenizer.decode(thinking.items[:n])
        assert rollout.turns[1][1].text == " So:</think>"


def test_text_of_joined_segments_is_the_decoding_of_their_tokens(policy):
    tokenizer = policy.chat_tokenizer
    for rollout in sample(SAMPLERS["segments"], policy).rollouts:
        assert rollout.text == tokenizer.decode([x for _, a in rollout.turns for x in a.items])


def test_chunked_contexts_stay_within_the_chunk_size(policy):
    group = sample(SAMPLERS["chunks"], policy)
    batch = batch_of(policy, group)
    prompt_length = len(group.rollouts[0].turns[0][1].observation)
    assert int(batch.inputs["length"].max()) <= prompt_length + 6
    first_responses = [row.turns[0][1] for r in group.rollouts for row in r.contexts]
    carried = [a.observation[prompt_length:] for a in first_responses if a.resets_context]
    assert carried == [
        (*r.turns[0][1].items[:1], *[x for _, a in r.turns[:i] for x in a.items][-2:])
        for r in group.rollouts
        for i in range(1, len(r.turns))
    ]


class TwoTurnEnv(Once):
    """Environment of two turns."""

    async def reply(self, task, rollout):
        return ("Hi!", "And?", None)[len(rollout.turns)]


def test_training_logp_of_branches_matches_and_branches_share_their_prefix(policy):
    sampler = EntropyBranching(leaves=6, initial_rollouts=2, branch_prob=9.0, entropy_tokens=4)
    group = run_coroutine(sampler(TASK, TwoTurnEnv(), policy.actor(3)))
    batch = batch_of(policy, group)
    logp = policy.signals(batch).logp
    torch.testing.assert_close(logp[batch.mask], batch.old_logp[batch.mask], atol=2e-5, rtol=0)
    first = [rollout.turns[0][1] for rollout in group.rollouts]
    assert len({response.rng_key for response in first}) == 3  # two with branches, and a third
    assert len({rollout.turns[1][1].rng_key for rollout in group.rollouts}) == 6


def test_beliefs_match_a_plain_forward_pass(policy):
    task = replace(TASK, reference_answer="forty")
    sampler = WithAnswerBelief(GroupSampler(2), answer_prefix=" So: ")
    rollout = run_coroutine(sampler(task, TwoTurnEnv(), policy.actor(3))).rollouts[1]
    (_, first), (_, second) = rollout.turns
    answer = policy.chat_tokenizer.encode_forced("forty")
    prefix = policy.chat_tokenizer.encode_forced(" So: ")
    context = (*first.observation, *first.items, *second.observation, *prefix, *answer)
    with tiny_lm.dense_attention(policy) as model, torch.no_grad():
        logp = model(torch.tensor([context])).logits[0].log_softmax(-1)[-6:-1]
    mean_logp = logp.gather(1, torch.tensor(answer)[:, None]).mean()
    assert rollout.step_values["belief"][-1] == pytest.approx(mean_logp.exp().item(), rel=1e-4)
    assert rollout.step_values["belief"][0] != rollout.step_values["belief"][-1]
