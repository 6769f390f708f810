"""Continuations in lock step equal one forward pass with an explicit mask, and ordinary answers."""

from dataclasses import replace

import pytest
import torch

from grupo.core.decoding import LockStep
from grupo.core.types import Rollout
from grupo.inference.base import Request, generate_all
from grupo.inference.sampling_params import Sampling
from grupo.models.causal_lm import CausalLM
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine as run
from tests.helpers import tiny_lm
from tests.helpers.tiny_lm import ALPHABET, CONTEXT

ROTARY = ("llama", "qwen3", "gemma2", "gemma3")
PROMPT = tuple(ALPHABET.index(letter) for letter in "Name animals")
STARTS = tuple(tuple(ALPHABET.index(letter) for letter in text) for text in ("1: ", "No. 2", ""))
LIMIT = 9


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    """A policy in float64 of each family with rotary positions."""
    root = tmp_path_factory.mktemp("models")
    folders = {name: str(tiny_lm.save_model(root / name, name)) for name in ROTARY}
    return {
        name: CausalLM(folder, dtype="float64", max_new_tokens=LIMIT).build()
        for name, folder in folders.items()
    }


def reply_of(policy, starts, key=5, **fields):
    """The reply of a new engine to one request."""
    engine = policy.weight_sync.engine()
    return generate_all(engine, [Request(PROMPT, key, decoding=LockStep(starts), **fields)])[0]


def visible(tokens, window):
    """A mask (L, L): which of the tokens (continuation, step, position) each of them reads.

    The prompt is the continuation -1. A token reads the prompt up to itself, the tokens of earlier
    steps, and itself, unless they are `window` positions before it.
    """
    mask = torch.zeros(len(tokens), len(tokens), dtype=torch.bool)
    for i, (thinker, step, position) in enumerate(tokens):
        for j, (other, earlier, other_position) in enumerate(tokens):
            of_prompt = other == -1 and (thinker != -1 or earlier <= step)
            sees = of_prompt or (thinker != -1 and other != -1 and earlier < step) or i == j
            mask[i, j] = sees and position - other_position < window
    return mask


@torch.no_grad()
def dense_logits(policy, items, block):
    """Logits (L, V) by one pass of transformers, and the places of the tokens in it by number."""
    tokens = [(-1, step, step) for step in range(len(PROMPT))]
    # the last token of a continuation is not evaluated: no other one reads it
    tokens += [
        (n, step, len(PROMPT) + n * block + step)
        for n, row in enumerate(items)
        for step in range(len(row) - 1)
    ]
    ids = [PROMPT[step] if n == -1 else items[n][step] for n, step, _ in tokens]
    config = policy.hf_model.config
    windows = {"full_attention": 10**9, "sliding_attention": getattr(config, "sliding_window", 0)}
    masks = {
        kind: torch.where(visible(tokens, window or 10**9), 0.0, -torch.inf)[None, None].double()
        for kind, window in windows.items()
    }
    has_windows = "sliding_attention" in (getattr(config, "layer_types", None) or ())
    with tiny_lm.dense_attention(policy) as model:
        logits = model(
            torch.tensor([ids]),
            attention_mask=masks if has_windows else masks["full_attention"],
            position_ids=torch.tensor([[position for _, _, position in tokens]]),
        ).logits[0]
    return logits, {(n, step): i for i, (n, step, _) in enumerate(tokens)}


@pytest.mark.parametrize("family", ROTARY)
def test_cached_steps_equal_one_forward_pass_with_the_mask(policies, family):
    policy = policies[family]
    reply = reply_of(policy, STARTS)
    rows = [part.tokens for part in reply.split()]
    items = [(*start, *row) for start, row in zip(STARTS, rows, strict=True)]
    assert len({len(row) for row in items}) > 1
    logits, place = dense_logits(policy, items, block=LIMIT + max(map(len, STARTS)))
    expected = []
    for n, (start, row) in enumerate(zip(STARTS, rows, strict=True)):
        for i, token in enumerate(row):
            step = len(start) + i
            before = place[n, step - 1] if step else place[-1, len(PROMPT) - 1]
            expected.append(float(logits[before].log_softmax(-1)[token]))
    assert reply.logp == pytest.approx(expected, abs=1e-5)
    assert min(reply.logp) < -0.1  # no distribution is a point


@pytest.mark.parametrize("family", ROTARY)
def test_one_continuation_has_the_tokens_of_an_ordinary_answer(policies, family):
    policy = policies[family]
    for key in range(2):
        plain = generate_all(policy.weight_sync.engine(), [Request(PROMPT, key)])[0]
        (alone,) = reply_of(policy, ((),), key).split()
        assert alone.tokens == plain.tokens
        assert alone.finish_reason == plain.finish_reason
        assert alone.logp == pytest.approx(plain.logp, abs=1e-5)


def test_another_continuation_changes_what_the_first_one_writes(policies):
    policy = policies["llama"]
    alone = [reply_of(policy, ((),), key).tokens for key in range(4)]
    first = [reply_of(policy, ((), ()), key).split()[0].tokens for key in range(4)]
    assert alone != first
    assert [tokens[0] for tokens in alone] == [tokens[0] for tokens in first]  # nothing to read yet


def test_continuations_have_random_streams_of_their_own(policies):
    rows = [part.tokens for part in reply_of(policies["llama"], ((),) * 4).split()]
    assert len(set(rows)) == 4
    greedy = reply_of(policies["llama"], ((),) * 2, sampling=Sampling(top_k=1)).split()
    assert greedy[0].tokens[0] == greedy[1].tokens[0]


def test_each_continuation_ends_by_itself(policies):
    policy = policies["llama"]
    ends = (ALPHABET.index("<end>"),)
    reasons = set()
    for key in range(8):
        for part in reply_of(policy, ((),) * 3, key, stop_strings=("e",)).split():
            reasons.add(part.finish_reason)
            letters = [ALPHABET[token] for token in part.tokens]
            assert (part.finish_reason == "end") == (part.tokens[-1] in ends)
            assert (part.finish_reason == "stop") == ("e" in letters[-1] != "<end>")
            assert "e" not in "".join(letters[:-1])
            assert (part.finish_reason != "length") or len(part.tokens) == LIMIT
    assert {"stop", "length"} <= reasons


def test_blocks_share_what_the_context_has_room_for(policies):
    policy = policies["llama"]
    engine = policy.weight_sync.engine()
    long = (*PROMPT, *(7,) * (CONTEXT - len(PROMPT) - 11))  # 11 positions behind it
    replies = generate_all(
        engine,
        [Request(long, 1, decoding=LockStep(((5,),) * n), stop_strings=()) for n in (1, 2, 6)],
    )
    assert [
        max((n for n, _ in reply.continuations), default=0) <= most
        for reply, most in zip(replies, (LIMIT, 4, 0), strict=True)
    ] == [True] * 3
    assert replies[2].tokens == ()


def test_all_tokens_of_all_continuations_are_counted_and_the_prompt_is_read_once(policies):
    actor = policies["llama"].actor(3)
    prompt = policies["llama"].encode_observation(Rollout(), "Name animals")

    async def decode(number):
        return await actor.fork(number).decode(Rollout(), "Name animals", LockStep(STARTS))

    first, second = run(decode(0)), run(decode(1))
    generated = sum(len(response.items) for response in (*first, *second))
    given = sum(map(len, STARTS))
    assert actor.generated_tokens == {"": generated}
    # the last token of a cached prompt is read again, for the logits behind it
    assert actor.read_tokens == {"": len(prompt) + given + 1 + given}


def test_models_without_rotary_positions_are_refused(tmp_path):
    policy = CausalLM(str(tiny_lm.save_model(tmp_path, "gpt2")), max_new_tokens=4).build()
    with pytest.raises(ConfigError, match=r"those of GPT2LMHeadModel are not rotary\. Allowed"):
        reply_of(policy, ((), ()))


def test_the_split_of_one_answer_is_the_answer(policies):
    reply = reply_of(policies["llama"], ((),))
    plain = replace(reply, continuations=())
    assert plain.split() == [plain]
    assert reply.split()[0].tokens == reply.tokens
