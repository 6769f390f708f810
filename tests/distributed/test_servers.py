"""Several ranks that generate with vLLM servers; the servers are imitated."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.distributed.conftest import Written, largest_difference
from tests.helpers.fake_vllm import FakeServer, Handler, completion
from tests.helpers.fast_cases import fast_cases


@pytest.fixture
def fakes() -> Iterator[list[FakeServer]]:
    servers = [FakeServer() for _ in range(2)]
    for server in servers:
        server.handle_completion = complete_by_seed
    yield servers
    for server in servers:
        server.stop()


def complete_by_seed(handler: Handler, number: int, body: dict[str, Any]) -> None:
    """An answer that does not depend on the weights, which differ by rounding between runs."""
    handler.respond(200, completion(body, ""))


def salts(server: FakeServer) -> list[str]:
    """The versions of the weights that requests were sent for, without repetitions."""
    return list(dict.fromkeys(body["cache_salt"] for body in server.completion_bodies))


@pytest.mark.slow
@pytest.mark.parametrize("recipe", fast_cases(1, ["grpo", "async"]))
@pytest.mark.parametrize("transfer", fast_cases(1, ["file", "gloo"]))
def test_two_ranks_generate_with_two_servers_what_one_process_generates(
    rank_processes, tmp_path, fakes, recipe, transfer
):
    urls = [fake.url for fake in fakes]
    alone, together = (
        rank_processes.trained(
            recipe, n, f"{recipe} {transfer} servers {n}", urls=urls[:n], transfer=transfer
        )
        for n in (1, 2)
    )
    assert together.rollouts == alone.rollouts
    assert largest_difference(together.weights, alone.weights) < 1e-10
    first, second = fakes
    loads = len(second.loaded_versions)
    assert loads == len(set(second.loaded_versions)) > 2  # rank 0 alone hands weights over
    assert first.loaded_versions[-loads:] == second.loaded_versions
    assert salts(second) == second.loaded_versions


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["grpo", "lora"])
def test_ranks_with_sharded_weights_hand_whole_ones_to_servers(rank_processes, fakes, recipe):
    urls = [fake.url for fake in fakes]
    whole, sharded = (
        rank_processes.trained(
            recipe,
            2,
            f"{recipe} servers sharding {sharding}",
            urls=urls,
            overrides={"policy.sharding": sharding},
            kernels=False,
        )
        for sharding in ("None", "FSDP2()")
    )
    assert sharded.rollouts == whole.rollouts
    assert largest_difference(sharded.weights, whole.weights) < 1e-10


@pytest.mark.slow
def test_ranks_go_on_without_a_server_that_died(rank_processes, tmp_path, fakes):
    urls = [fake.url for fake in fakes]
    whole = rank_processes.trained("grpo", 2, "both servers", urls=urls)
    dying = fakes[1]
    deadly = len(dying.completion_bodies) + 10
    dying.handle_completion = lambda handler, number, body: (
        dying.stop() if number == deadly else complete_by_seed(handler, number, body)
    )
    reduced = rank_processes.trained("grpo", 2, "one server dies", urls=urls)
    assert len(dying.completion_bodies) > deadly
    assert reduced.rollouts == whole.rollouts
    assert largest_difference(reduced.weights, whole.weights) < 1e-10


@pytest.mark.slow
def test_a_server_that_cannot_load_weights_is_reported_by_all_ranks(
    rank_processes, tmp_path, fakes
):
    fakes[0].load_weights = lambda path: {"error": "RuntimeError: out of memory"}
    run = tmp_path / "run"
    results = rank_processes("train", run, 2, recipe="grpo", urls=[fake.url for fake in fakes])
    for result in results:
        assert "EngineError: vllm at" in result["error"]
        assert "cannot load the weights: RuntimeError: out of memory" in result["error"]


@pytest.mark.slow
def test_servers_that_ranks_would_start_themselves_are_refused(rank_processes, tmp_path):
    results = rank_processes("train", tmp_path / "run", 2, recipe="grpo", python="python")
    for result in results:
        assert (
            "ConfigError: policy.engine.python: 'python'. Allowed with several ranks: ''"
            in (result["error"])
        )


@pytest.mark.slow
def test_a_run_with_servers_is_resumed(rank_processes, tmp_path, fakes):
    urls = [fake.url for fake in fakes]
    run = tmp_path / "run"
    options = {"recipe": "grpo", "urls": urls, "patience": 3}
    rank_processes("train", run, 2, at="step/updated:4", signalled=1, **options)
    results = rank_processes("resume", run, 2)
    assert [result["error"] for result in results] == ["", ""]
    resumed, whole = Written.of(run), rank_processes.trained("grpo", 2, "unstopped", urls=urls)
    assert resumed.rollouts == whole.rollouts
    assert largest_difference(resumed.weights, whole.weights) < 1e-10
