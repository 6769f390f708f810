"""The engine with a real vLLM; `GRUPO_VLLM_PYTHON` names an interpreter that has it."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from grupo.inference.base import Reply, StopConditions, generate_all
from grupo.inference.engine_errors import EngineError
from grupo.inference.local import LocalEngine
from grupo.inference.sampling_params import Sampling
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_engine import VllmEngine
from grupo.models.causal_lm import CausalLM
from tests.helpers import tiny_lm
from tests.helpers.real_vllm import (
    logits_of,
    logp_errors,
    request_for,
    requests_of,
    server_group,
    server_processes,
    serving,
    text_of,
    with_reference_logp,
)
from tests.helpers.tiny_lm import ALPHABET

PYTHON = os.environ.get("GRUPO_VLLM_PYTHON", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="GRUPO_VLLM_PYTHON names no interpreter with vLLM"),
]

CONTEXT = 512
STOP_CONDITIONS = StopConditions(max_new_tokens=24, eos_token_ids=(0,), context_length=CONTEXT)
GREEDY = Sampling(top_k=1)
# on a CPU vLLM 0.32 cannot sample with seeds during chunked prefill; the rest saves memory
OPTIONS = ("--no-enable-chunked-prefill", "--max-num-seqs", "64")


@pytest.fixture(scope="module", autouse=True)
def temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps logs of killed servers out of the system's folder."""
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
    """The same model in transformers."""
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


@pytest.fixture(scope="module")
def local(folder: str) -> LocalEngine:
    """The local engine."""
    policy = CausalLM(folder, max_new_tokens=24).build()
    tokenizer = policy.chat_tokenizer.tokenizer
    return LocalEngine(policy.evaluator.backend, policy.lm_head, tokenizer, STOP_CONDITIONS)


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
    engine = VllmEngine(spec, folder, STOP_CONDITIONS)
    engine.load(model.state_dict())
    yield engine
    engine.close()


@pytest.fixture
def engine(served: VllmEngine, model: Any) -> Iterator[VllmEngine]:
    """The engine with the model's weights and the usual stop conditions."""
    served.load(model.state_dict())
    yield served
    served.stop_conditions = STOP_CONDITIONS


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
def test_logp_is_that_of_the_sampled_distribution(engine, model, sampling):
    requests = requests_of(sampling=sampling)
    replies = generate_all(engine, requests)
    assert logp_errors(model, requests, replies).max() < 1e-3
    for request, reply in zip(requests, replies, strict=True):
        logits = logits_of(model, request, reply) / sampling.temperature
        mask = sampling.truncation_mask(logits)
        assert not mask.gather(1, torch.tensor(reply.tokens)[:, None]).any()


def test_greedy_replies_match_the_local_engine(engine, local):
    requests = requests_of(sampling=GREEDY)
    expected, replies = generate_all(local, requests), generate_all(engine, requests)
    assert [(r.tokens, r.finish_reason) for r in replies] == [
        (r.tokens, r.finish_reason) for r in expected
    ]
    assert {p for reply in replies for p in reply.logp} == {0.0}


@pytest.mark.parametrize(
    "change",
    [
        {"max_new_tokens": 5},
        {"max_new_tokens": 1},
        {"eos_token_ids": ()},
        {"eos_token_ids": tuple(range(34, 60))},  # capitals
        {"stop_strings": ("e",)},
        {"stop_strings": ("never generated", "x", "B")},
        {"context_length": 202},  # room for two tokens after the longest prompt
        {"context_length": 200},  # and for none
        {"context_length": 150},
    ],
    ids=repr,
)
def test_replies_end_where_those_of_the_local_engine_do(engine, local, change):
    engine.stop_conditions = replace(STOP_CONDITIONS, **change)
    requests = requests_of(sampling=GREEDY)
    expected, replies = (
        generate_all(replace(local, stop_conditions=engine.stop_conditions), requests),
        generate_all(engine, requests),
    )
    assert [(r.tokens, r.finish_reason) for r in replies] == [
        (r.tokens, r.finish_reason) for r in expected
    ]


def test_stop_token_is_the_last_token_of_a_reply(engine):
    replies = generate_all(engine, requests_of(100))
    assert {reply.finish_reason for reply in replies} == {"end", "length"}
    for reply in replies:
        assert len(reply.tokens) == len(reply.logp)
        end = reply.tokens.index(0) if 0 in reply.tokens else len(reply.tokens)
        assert (end == len(reply.tokens) - 1) == (reply.finish_reason == "end")
        assert len(reply.tokens) == 24 or reply.finish_reason == "end"


@pytest.mark.parametrize("width", [1, 2, 5])
def test_stop_string_ends_exactly_the_replies_that_contain_it(engine, width):
    requests = requests_of(100)
    free = generate_all(engine, requests)
    stop = text_of(max(free, key=lambda reply: len(reply.tokens)))[6 : 6 + width]
    engine.stop_conditions = replace(STOP_CONDITIONS, stop_strings=(stop, "never generated"))
    matches = 0
    for before, after in zip(free, generate_all(engine, requests), strict=True):
        place = text_of(before).find(stop)
        if place < 0:
            assert after.tokens == before.tokens
        else:
            matches += 1
            assert (text_of(after), after.finish_reason) == (
                text_of(before)[: place + width],
                "stop",
            )
    assert matches >= 1


def test_equal_keys_give_equal_replies_and_different_keys_differ(engine):
    requests = [request_for("Hi", key) for key in (1, 1, 2, 3)]
    first, again = generate_all(engine, requests), generate_all(engine, requests)
    assert first == again
    assert first[0] == first[1]
    assert len({reply.tokens for reply in first}) == 3


def test_first_tokens_have_the_frequencies_of_the_distribution(engine, model):
    engine.stop_conditions = replace(STOP_CONDITIONS, max_new_tokens=1)
    count = 2_000
    replies = generate_all(engine, [request_for("Hi", key) for key in range(count)])
    first_tokens = torch.tensor([reply.tokens[0] for reply in replies])
    frequency = first_tokens.bincount(minlength=len(ALPHABET)) / count
    p = logits_of(model, request_for("Hi", 0), Reply((5,)))[0].softmax(-1)
    deviation = (frequency - p).abs() / (p * (1 - p) / count).sqrt()
    assert deviation[p > 4e-3].max() < 4  # standard deviations, of at most 250 tokens


def test_new_weights_apply_at_once_and_invalidate_the_prefix_cache(engine, model, folder):
    requests = requests_of()  # some prompts are longer than a block of vLLM's prefix cache
    before, version = generate_all(engine, requests), engine.weights_version
    other = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    engine.load(other.state_dict())
    assert engine.weights_version != version
    after = generate_all(engine, requests)
    assert logp_errors(other, requests, after).max() < 1e-3
    assert logp_errors(model, requests, after).max() > 0.1
    engine.load(model.state_dict())
    assert engine.weights_version == version
    assert generate_all(engine, requests) == before


@pytest.mark.parametrize("process", ["api_server", "EngineCore"])
def test_server_killed_during_a_call_is_replaced(engine, process):
    requests = requests_of(200)
    undisturbed = generate_all(engine, requests)
    pid, answered = server_processes(engine)[process], []
    for indexed_reply in engine(requests):
        answered.append(indexed_reply)
        if len(answered) == 10:
            os.kill(pid, signal.SIGKILL)
    assert server_processes(engine)[process] != pid
    assert sorted(i for i, _ in answered) == list(range(200))
    assert [reply for _, reply in sorted(answered)] == undisturbed


def test_incomplete_weights_raise_and_the_next_ones_are_loaded(engine, model):
    weights = dict(model.state_dict())
    removed = weights.pop("model.norm.weight")
    with pytest.raises(
        EngineError, match=r"1 parameters of vLLM are missing, first model.norm.weight"
    ):
        engine.load(weights)
    engine.load(weights | {"model.norm.weight": removed})
    requests = requests_of()
    assert logp_errors(model, requests, generate_all(engine, requests)).max() < 1e-3


def test_weights_arrive_over_a_process_group(folder, model):
    spec = Vllm(
        python=PYTHON,
        gpu_memory_utilization=0.1,
        server_options=("--enforce-eager", *OPTIONS),
        weight_transfer="gloo",
        request_timeout=120.0,
        max_failures=1,
    )
    engine = VllmEngine(spec, folder, STOP_CONDITIONS)
    requests = requests_of()
    changed = {name: x * 0.5 for name, x in model.state_dict().items()}
    engine.load(changed)
    halved = generate_all(engine, requests)
    engine.load(model.state_dict())
    replies = generate_all(engine, requests)
    engine.close()
    assert logp_errors(model, requests, replies).max() < 1e-3
    assert logp_errors(model, requests, halved).max() > 1e-2


def test_two_servers_of_grupo_serve_share_requests(folder, model):
    with serving(PYTHON, folder, 2, "--enforce-eager", *OPTIONS) as urls:
        engine = VllmEngine(Vllm(urls, weight_transfer="gloo"), folder, STOP_CONDITIONS)
        engine.load(model.state_dict())
        requests = requests_of()
        replies = generate_all(engine, requests)
        assert logp_errors(model, requests, replies).max() < 1e-3
        assert sorted(set(engine.homes.server_of.values())) == [0, 1]
        engine.close()


def test_close_ends_every_process(served):
    assert len(server_processes(served)) >= 3
    group = server_group(served)
    served.close()
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)


def test_bfloat16_logp_is_close(folder, model):
    half = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    more = ("--enforce-eager", *OPTIONS)
    spec = Vllm(python=PYTHON, gpu_memory_utilization=0.1, server_options=more, dtype="bfloat16")
    engine = VllmEngine(spec, folder, STOP_CONDITIONS)
    engine.load(model.state_dict())
    requests = requests_of()
    replies = generate_all(engine, requests)
    engine.close()
    rounded = with_reference_logp(half, requests, replies)
    rounding = logp_errors(model, requests, rounded).mean()  # transformers' own error in bfloat16
    assert 0 < rounding < 0.1
    assert logp_errors(model, requests, replies).mean() < 2 * rounding
    assert logp_errors(half, requests, replies).mean() < 2 * rounding
