"""A vLLM server that releases its memory while the policy is updated, and GPUs of its own."""

from collections.abc import Iterator

import pytest
import torch

from grupo.inference.engine_errors import EngineError
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_command import server_command, server_environment
from grupo.models.causal_lm import CausalLM
from grupo.models.weight_sync import ServerWeights
from grupo.util.errors import ConfigError
from tests.helpers import tiny_lm
from tests.helpers.fake_vllm import FakeServer
from tests.helpers.vllm_fixtures import NEW_WEIGHTS, assert_all_answered_once, engine_of

SLEEP = "/sleep?level=2"
WAKE_WEIGHTS, WAKE_CACHE = "/wake_up?tags=weights", "/wake_up?tags=kv_cache"


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    server = FakeServer()
    yield server
    server.stop()


def test_weights_are_loaded_between_the_waking_of_weights_and_of_the_cache(fake):
    engine = engine_of(fake, sleep=True)
    assert_all_answered_once(engine)
    engine.release_memory()
    engine.release_memory()  # it sleeps already
    engine.load(NEW_WEIGHTS)
    assert_all_answered_once(engine)
    assert fake.calls == ["load", SLEEP, WAKE_WEIGHTS, "load", WAKE_CACHE]


def test_equal_weights_are_loaded_again_because_sleep_discards_them(fake):
    engine = engine_of(fake, sleep=True)
    engine.release_memory()
    assert_all_answered_once(engine)
    assert fake.calls == ["load", SLEEP, WAKE_WEIGHTS, "load", WAKE_CACHE]


def test_a_server_sleeps_only_if_it_shall(fake):
    engine = engine_of(fake)
    engine.release_memory()
    engine.load(NEW_WEIGHTS)
    assert fake.calls == ["load", "load"]


def test_a_server_that_died_asleep_is_woken_and_loaded_when_it_is_back(fake):
    engine = engine_of(fake, sleep=True)
    port = fake.port
    fake.stop()
    engine.release_memory()
    fake.start(port)
    assert_all_answered_once(engine)
    assert fake.calls == ["load", WAKE_WEIGHTS, "load", WAKE_CACHE]


def test_a_server_without_sleep_mode_is_an_error_that_names_the_path(fake, monkeypatch):
    engine = engine_of(fake, sleep=True)
    handler = fake.connection.RequestHandlerClass
    post = handler.do_POST

    def without_sleep_mode(self) -> None:
        if self.path.startswith("/sleep"):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.respond(404, {"error": {"message": "Not Found"}})
        else:
            post(self)

    monkeypatch.setattr(handler, "do_POST", without_sleep_mode)
    with pytest.raises(EngineError, match=r"rejects /sleep\?level=2: 404"):
        engine.release_memory()


def test_a_started_server_gets_its_devices_and_the_sleep_mode():
    spec = Vllm(python="python", devices="1,2", sleep=True)
    assert server_environment(spec)["CUDA_VISIBLE_DEVICES"] == "1,2"
    assert "--enable-sleep-mode" in server_command(spec, "m", 64)
    plain = Vllm(python="python")
    assert "CUDA_VISIBLE_DEVICES" not in server_environment(plain)
    assert "--enable-sleep-mode" not in server_command(plain, "m", 64)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"devices": "cuda:1", "python": "p"}, r"devices: 'cuda:1'. Allowed: numbers of GPUs"),
        ({"devices": "1,", "python": "p"}, r"devices: '1,'. Allowed: numbers of GPUs"),
        ({"devices": "1"}, r"devices: '1'. Allowed: with python; a running server has its own"),
    ],
)
def test_devices_are_numbers_of_gpus_of_a_started_server(fields, message):
    with pytest.raises(ConfigError, match=message):
        Vllm(**fields)


def test_a_sleeping_server_cannot_generate_during_updates(fake, tmp_path):
    folder = str(tiny_lm.save_model(tmp_path))
    policy = CausalLM(folder, max_new_tokens=6, engine=Vllm((fake.url,), sleep=True)).build()
    with pytest.raises(ConfigError, match="sleep: True"):
        policy.use_weight_copy_for_generation()


def test_weights_are_copied_in_the_servers_dtype_and_tied_ones_once(fake, tmp_path):
    folder = str(tiny_lm.save_model(tmp_path, "qwen3"))  # its head is the embedding
    spec = CausalLM(folder, max_new_tokens=6, engine=Vllm((fake.url,), dtype="bfloat16"))
    policy = spec.build()
    weights = policy.weight_sync.snapshot()
    embedding, head = weights["model.embed_tokens.weight"], weights["lm_head.weight"]
    assert embedding.data_ptr() == head.data_ptr()
    assert {x.dtype for x in weights.values()} == {torch.bfloat16}
    before = embedding.clone()
    with torch.no_grad():
        policy.parameters()[0].zero_()
    assert torch.equal(embedding, before)
    assert isinstance(policy.weight_sync, ServerWeights)
