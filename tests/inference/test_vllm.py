"""The engine with a real vLLM; `GRUPO_VLLM_PYTHON` is an interpreter that has one."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from grupo.inference.base import Reply, StopConditions, generate_all
from grupo.inference.http_client import EngineError
from grupo.inference.local import LocalEngine
from grupo.inference.sampling_params import Sampling
from grupo.inference.vllm import Vllm, VllmEngine
from grupo.models.causal_lm import CausalLM
from tests.helpers import tiny_lm
from tests.helpers.real_vllm import ask, differences, logits_of, many, processes, text_of, with_logp
from tests.helpers.tiny_lm import ALPHABET

PYTHON = os.environ.get("GRUPO_VLLM_PYTHON", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="GRUPO_VLLM_PYTHON names no interpreter with vLLM"),
]

CONTEXT = 512
BOUNDS = StopConditions(max_new_tokens=24, eos_token_ids=(0,), context_length=CONTEXT)
GREEDY = Sampling(top_k=1)
# a processor's vLLM 0.32 cannot read a seeded prompt in parts; the rest is for a small machine
OPTIONS = ("--no-enable-chunked-prefill", "--max-num-seqs", "64")


@pytest.fixture(scope="module", autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Logs of servers that were killed are not left in the system's folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("temporary")))
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Llama of a head size that vLLM takes."""
    place = tmp_path_factory.mktemp("model")
    return str(tiny_lm.save_model(place, head_dim=32, max_position_embeddings=CONTEXT))


@pytest.fixture(scope="module")
def model(folder: str) -> Any:
    """The same as transformers computes it."""
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


@pytest.fixture(scope="module")
def local(folder: str) -> LocalEngine:
    """Our own engine."""
    policy = CausalLM(folder, max_new_tokens=24).build()
    return LocalEngine(
        policy.evaluator.body, policy.lm_head, policy.chat_tokenizer.tokenizer, BOUNDS
    )


@pytest.fixture(scope="module")
def served(folder: str, model: Any) -> Iterator[VllmEngine]:
    """A vLLM in float32."""
    spec = Vllm(
        python=PYTHON,
        gpu_memory_utilization=0.1,
        server_options=OPTIONS,
        request_timeout=120.0,
        max_failures=2,
    )
    engine = spec.build(folder, BOUNDS)
    engine.load(model.state_dict())
    yield engine
    engine.close()


@pytest.fixture
def engine(served: VllmEngine, model: Any) -> Iterator[VllmEngine]:
    """The same with the model's weights and usual bounds, whatever another test did."""
    served.load(model.state_dict())
    yield served
    served.stop_conditions = BOUNDS


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(temperature=0.6),
        Sampling(temperature=1.5),
        Sampling(top_k=4),
        Sampling(top_p=0.8),
        Sampling(min_p=0.1),
        Sampling(temperature=0.7, top_p=0.9, top_k=8),
        Sampling(temperature=1.2, top_k=8, min_p=0.05),
    ],
)
def test_log_probabilities_are_those_of_what_is_sampled_from(engine, model, sampling):
    requests = many(sampling=sampling)
    replies = generate_all(engine, requests)
    assert differences(model, requests, replies).max() < 1e-3
    for request, reply in zip(requests, replies, strict=True):
        cut = sampling.cut(logits_of(model, request, reply) / sampling.temperature)
        assert not cut.gather(1, torch.tensor(reply.tokens)[:, None]).any()


def test_greedy_answers_are_those_of_the_local_engine(engine, local):
    requests = many(sampling=GREEDY)
    ours, theirs = generate_all(local, requests), generate_all(engine, requests)
    assert [(r.tokens, r.finish_reason) for r in theirs] == [
        (r.tokens, r.finish_reason) for r in ours
    ]
    assert {p for reply in theirs for p in reply.logp} == {0.0}


@pytest.mark.parametrize(
    "change",
    [
        {"limit": 5},
        {"limit": 1},
        {"ends": ()},
        {"ends": tuple(range(34, 60))},  # capitals
        {"stop": ("e",)},
        {"stop": ("never said", "x", "B")},
        {"context": 202},  # room for two tokens after the longest prompt
        {"context": 200},  # and for none
        {"context": 150},
    ],
    ids=repr,
)
def test_answers_end_where_those_of_the_local_engine_do(engine, local, change):
    engine.bounds = replace(BOUNDS, **change)
    requests = many(sampling=GREEDY)
    ours, theirs = (
        generate_all(replace(local, bounds=engine.bounds), requests),
        generate_all(engine, requests),
    )
    assert [(r.tokens, r.finish_reason) for r in theirs] == [
        (r.tokens, r.finish_reason) for r in ours
    ]


def test_the_end_token_ends_an_answer_and_is_its_last(engine):
    replies = generate_all(engine, many(100))
    assert {reply.finish_reason for reply in replies} == {"end", "length"}
    for reply in replies:
        assert len(reply.tokens) == len(reply.logp)
        place = reply.tokens.index(0) if 0 in reply.tokens else len(reply.tokens)
        assert (place == len(reply.tokens) - 1) == (reply.finish_reason == "end")
        assert len(reply.tokens) == 24 or reply.finish_reason == "end"


@pytest.mark.parametrize("width", [1, 2, 5])
def test_a_stop_text_ends_the_answer_that_says_it_and_no_other(engine, width):
    requests = many(100)
    free = generate_all(engine, requests)
    stop = text_of(max(free, key=lambda reply: len(reply.tokens)))[6 : 6 + width]
    engine.bounds = replace(BOUNDS, stop_strings=(stop, "never said"))
    found = 0
    for before, after in zip(free, generate_all(engine, requests), strict=True):
        place = text_of(before).find(stop)
        if place < 0:
            assert after.tokens == before.tokens
        else:
            found += 1
            assert (text_of(after), after.finish_reason) == (
                text_of(before)[: place + width],
                "stop",
            )
    assert found >= 1


def test_equal_keys_say_the_same_and_different_keys_differ(engine):
    requests = [ask("Hi", key) for key in (1, 1, 2, 3)]
    first, again = generate_all(engine, requests), generate_all(engine, requests)
    assert first == again
    assert first[0] == first[1]
    assert len({reply.tokens for reply in first}) == 3


def test_first_tokens_are_as_frequent_as_they_are_likely(engine, model):
    engine.bounds = replace(BOUNDS, max_new_tokens=1)
    count = 2_000
    replies = generate_all(engine, [ask("Hi", key) for key in range(count)])
    said = torch.tensor([reply.tokens[0] for reply in replies]).bincount(minlength=len(ALPHABET))
    p = logits_of(model, ask("Hi", 0), Reply((5,)))[0].softmax(-1)
    off = (said / count - p).abs() / (p * (1 - p) / count).sqrt()
    assert off[p > 4e-3].max() < 4  # standard deviations, of at most 250 tokens


def test_other_weights_say_other_things_at_once_and_forget_what_was_read(engine, model, folder):
    requests = many()  # some prompts are longer than what vLLM remembers at a time
    before, version = generate_all(engine, requests), engine.version
    other = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    engine.load(other.state_dict())
    assert engine.version != version
    after = generate_all(engine, requests)
    assert differences(other, requests, after).max() < 1e-3
    assert differences(model, requests, after).max() > 0.1
    engine.load(model.state_dict())
    assert engine.version == version
    assert generate_all(engine, requests) == before


@pytest.mark.parametrize("who", ["api_server", "EngineCore"])
def test_a_server_that_is_killed_in_the_middle_of_a_call_is_replaced(engine, who):
    requests = many(200)
    undisturbed = generate_all(engine, requests)
    victim, found = processes(engine)[who], []
    for answered in engine(requests):
        found.append(answered)
        if len(found) == 10:
            os.kill(victim, signal.SIGKILL)
    assert processes(engine)[who] != victim
    assert sorted(i for i, _ in found) == list(range(200))
    assert [reply for _, reply in sorted(found)] == undisturbed


def test_weights_that_do_not_fit_are_one_error_and_the_next_ones_are_loaded(engine, model):
    weights = dict(model.state_dict())
    lost = weights.pop("model.norm.weight")
    with pytest.raises(EngineError, match=r"1 of vLLM's tensors .* first model.norm.weight"):
        engine.load(weights)
    engine.load(weights | {"model.norm.weight": lost})
    requests = many()
    assert differences(model, requests, generate_all(engine, requests)).max() < 1e-3


def test_closing_ends_every_process(served):
    assert len(processes(served)) >= 3
    group = served.server.guard_processes[0].pid
    served.close()
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)


def test_in_bfloat16_the_log_probabilities_are_near(folder, model):
    half = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    more = ("--enforce-eager", *OPTIONS)
    engine = Vllm(
        python=PYTHON, gpu_memory_utilization=0.1, server_options=more, dtype="bfloat16"
    ).build(folder, BOUNDS)
    engine.load(model.state_dict())
    requests = many()
    replies = generate_all(engine, requests)
    engine.close()
    ours = with_logp(half, requests, replies)
    rounding = differences(model, requests, ours).mean()  # what bfloat16 costs transformers itself
    assert 0 < rounding < 0.1
    assert differences(model, requests, replies).mean() < 2 * rounding
    assert differences(half, requests, replies).mean() < 2 * rounding
