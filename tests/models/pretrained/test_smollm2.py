"""SmolLM2, rounded to 4 bits: token ids, likelihoods and greedy answers against other programs.

The token ids are computed from the vocabulary and the merges of the GGUF file alone, the numbers
by transformers' plain forward pass with its own attention.
"""

import asyncio
from collections.abc import Iterator
from copy import deepcopy

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerBase

from grupo.core.types import Rollout
from grupo.inference.sampling_params import Sampling
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.loading import load_tokenizer
from grupo.models.pretrained.smollm2 import FILE, smollm2
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from grupo.util.user_paths import models_dir
from tests.helpers.byte_level_bpe import ByteLevelBPE
from tests.helpers.tiny_lm import batch_of
from tests.helpers.user_home import USER_HOME

pytestmark = pytest.mark.real

TEXTS = (
    *("", " ", "  ", "\n", "\n\n", " \n ", "\t", "\tx\ty", "a", " a", "a ", "Hello, world!"),
    *("0", "7", "12", "2026", "1234567890", "3.14159", "1,000,000", "12 + 7 = 19", "-5", "x2y3"),
    *("What is 40 + 85? Answer with the number only.", "don't, we'll, it's, I'd"),
    *("naïve café", "Ünïcödé", "e\u0301 combining", "日本語のテキスト", "中文", "한국어", "Привет"),
    *("😀", "👩‍👩‍👧‍👦 family", "a😀b", "½ ² ³ Ⅷ", "٣٤٥", "\u200bzero width", "\u00a0no break"),
    *("def f(x):\n    return x ** 2\n", "{'a': [1, 2.5]}", '<div class="x">', "a_b-c/d\\e"),
    *("antidisestablishmentarianism" * 4, "!!!???...", "\r\n windows", "tab\t\tspace  end  "),
    *("<|im_start|>user\nHi<|im_end|>\n", "<|im_end|>", "<|endoftext|>x", "a<|im_start|>b 1"),
)
PAGE = (
    "A policy generates a group of answers to one task and is trained on the comparison of their"
    " rewards. The answers of a group share their prompt, so that the mean reward of the group is"
    " a baseline: an answer with a larger reward becomes likelier, one with a smaller reward less"
    " likely. No second model has to be trained to predict rewards."
)
WORDS = "bread river clock paper ocean green seven table music snow".split()  # noqa: SIM905
PROMPTS = (
    *(f"What is {n} + {3 * n + 8}?" for n in range(11, 21)),
    *(f"Write a sentence about the word {word}." for word in WORDS),
)
CLEAR_LEAD = 1e-3  # of the best logit, below which two computations may choose another token


@pytest.fixture(scope="module", autouse=True)
def cache_of_the_user() -> Iterator[None]:
    """The model is where `make real-model` put it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRUPO_HOME", USER_HOME)
        yield


@pytest.fixture(scope="module")
def folder(cache_of_the_user) -> str:
    try:
        return str(smollm2())
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def encoders(folder) -> tuple[PreTrainedTokenizerBase, ByteLevelBPE]:
    """The tokenizer of the converted folder, and the independent one."""
    return load_tokenizer(folder), ByteLevelBPE(models_dir() / FILE)


@pytest.fixture(scope="module")
def policy(folder) -> CausalPolicy:
    spec = CausalLM("smollm2", max_new_tokens=24, sampling=Sampling(top_k=1))
    return spec.build()


@pytest.fixture(scope="module")
def model(folder):
    loaded = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    return loaded.eval()


def test_there_are_fifty_texts_with_every_special_token_of_the_chat_template():
    assert len(set(TEXTS)) == len(TEXTS) == 50


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_token_ids_are_those_of_the_vocabulary_and_merges_of_the_file(encoders, text):
    tokenizer, expected = encoders
    assert tokenizer(text, add_special_tokens=False)["input_ids"] == expected(text)


def likelihoods(model, token: torch.Tensor) -> torch.Tensor:
    """Log-probabilities of all tokens but the first by the plain forward pass."""
    logp = model(token).logits[0, :-1].log_softmax(-1)
    return logp.gather(1, token[0, 1:, None])[:, 0]


@torch.no_grad()
def test_the_likelihood_of_a_page_is_that_of_the_plain_forward_pass(policy, model):
    tokenizer = policy.chat_tokenizer.tokenizer
    token = torch.tensor([tokenizer(PAGE)["input_ids"]])
    row = torch.zeros(token.shape[1] - 1, dtype=torch.long)
    column = torch.arange(token.shape[1] - 1)
    length = torch.tensor([token.shape[1]])
    hidden = policy.evaluator.hidden_states(token, length, row, column)
    logp, _ = hidden.score(policy.lm_head, token[0, 1:], 1.0)
    expected = likelihoods(model, token)
    assert len(expected) > 60
    torch.testing.assert_close(logp, expected, rtol=0, atol=1e-3)
    exact = likelihoods(deepcopy(model).double(), token)
    rounding = (expected - exact).square().mean().sqrt()  # of transformers' float32
    assert (logp - exact).square().mean().sqrt() < 2 * rounding
    assert abs(logp.mean() - exact.mean()) < 2 * rounding


def greedy_rollouts(policy: CausalPolicy) -> list[Rollout]:
    """An answer to every prompt."""
    actor = policy.actor(0)

    async def roll_out(prompt: str) -> Rollout:
        messages = ({"role": "user", "content": prompt},)
        return Rollout().append_turn(messages, await actor.fork(prompt)(Rollout(), messages))

    async def roll_out_all() -> list[Rollout]:
        return await asyncio.gather(*map(roll_out, PROMPTS))

    return run_coroutine(roll_out_all())


@torch.no_grad()
def test_greedy_answers_are_the_likeliest_tokens_of_the_plain_forward_pass(policy, model):
    rollouts = greedy_rollouts(policy)
    batch = batch_of(policy, rollouts)
    assert len(rollouts) == 20
    num_clear = 0
    for i in range(len(rollouts)):
        start, length = int(batch.inputs["start"][i]), int(batch.inputs["length"][i])
        token = batch.inputs["token"][i, :length]
        logits = model(token[None]).logits[0, start - 1 : -1]
        best, second = logits.topk(2).values.T
        clear = best - second > CLEAR_LEAD
        assert torch.equal(logits.argmax(-1)[clear], token[start:][clear])
        num_clear += int(clear.sum())
    assert num_clear > 200
