"""Weights in memory that processes of one machine share; the handles of CUDA have a stand-in."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from grupo.inference.engine_errors import EngineError
from grupo.inference.vllm_worker import WeightLoaderExtension, shared_memory
from grupo.inference.vllm_worker.digest import WeightDigest
from grupo.inference.vllm_worker.shared_memory import place_of, shared_tensors
from grupo.inference.weight_transfer import SharedMemoryTransfer, checksum
from grupo.util.errors import ConfigError
from tests.helpers.fake_vllm import FakeServer
from tests.helpers.paths import CHILD_ENV
from tests.helpers.vllm_fixtures import NEW_WEIGHTS, WEIGHTS, assert_all_answered_once, engine_of

CPU = torch.device("cpu")
TENSORS = {
    "b": torch.randn(3, 2),
    "a": torch.arange(4),
    "c.d": torch.zeros(0, 5),
    "half": torch.randn(300, 70).bfloat16(),
    "scalar": torch.tensor(2.0),
    "turned": torch.randn(5, 4).T,
}
READER = """
import sys
import torch
from grupo.inference.vllm_worker.digest import WeightDigest
from grupo.inference.vllm_worker.shared_memory import shared_tensors

for handles in sys.stdin:
    digest = WeightDigest()
    tensors = dict(shared_tensors(handles, torch.device("cpu"), digest))
    print(digest.hexdigest(), *sorted(tensors), float(tensors["b"].sum()), flush=True)
"""


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    server = FakeServer()
    server.facts["place"] = place_of(CPU)
    yield server
    server.stop()


@pytest.fixture
def reader() -> Iterator[Any]:
    """Another process: checksum, names and a sum of the tensors behind handles."""
    with subprocess.Popen(
        [sys.executable, "-c", READER],
        env={**CHILD_ENV, "PATH": ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        to_process: Any = process.stdin
        from_process: Any = process.stdout

        def read(handles: str) -> list[str]:
            to_process.write(handles + "\n")
            to_process.flush()
            return from_process.readline().split()

        yield read
        to_process.close()


@pytest.mark.slow
def test_another_process_finds_all_tensors_with_their_bits(reader):
    transfer = SharedMemoryTransfer(torch.float32)
    for scale in (1.0, 3.0, -1.0):
        weights = TENSORS | {"b": torch.full((3, 2), scale)}
        published = transfer.publish(weights)
        digest, *names, total = reader(*published.args)
        converted = weights | {"half": weights["half"].float(), "turned": weights["turned"].clone()}
        assert (
            digest
            == published.version
            == checksum({name: x.contiguous() for name, x in converted.items()})
        )
        assert names == sorted(weights)
        assert float(total) == 6 * scale
    transfer.close()


@pytest.mark.slow
def test_tensors_are_not_copied(monkeypatch):
    transfer = SharedMemoryTransfer(torch.float32)
    published = transfer.publish({"w": torch.zeros(3)})
    digest = WeightDigest()
    ((_, opened),) = shared_tensors(*published.args, CPU, digest)
    transfer.tensors["w"].fill_(7.0)
    assert opened.tolist() == [7.0, 7.0, 7.0]


class Worker(WeightLoaderExtension):
    """A worker whose model is a dictionary."""

    def __init__(self) -> None:
        self.device = CPU
        self.model: dict[str, torch.Tensor] = {}

    def _grupo_load(self, weights: Any) -> None:
        self.model = {name: tensor.clone() for name, tensor in weights}


def test_memory_that_is_gone_leaves_the_worker_without_version():
    transfer = SharedMemoryTransfer(torch.float32)
    old = transfer.publish({name: x.clone() for name, x in WEIGHTS.items()})
    transfer.publish(NEW_WEIGHTS)
    worker = Worker()
    worker.grupo_version = "old"
    result = worker.grupo_import(*old.args, old.version)
    assert "RuntimeError" in result["error"]
    assert worker.grupo_version == ""


def test_changed_memory_is_noticed_by_its_checksum():
    transfer = SharedMemoryTransfer(torch.float32)
    published = transfer.publish({name: x.clone() for name, x in WEIGHTS.items()})
    transfer.tensors["b"].add_(1)
    result = Worker().grupo_import(*published.args, published.version)
    assert result["version"] not in ("", published.version)


def test_a_server_takes_each_update_from_shared_memory(fake):
    engine = engine_of(fake, weight_transfer="ipc")
    assert_all_answered_once(engine)
    engine.load(NEW_WEIGHTS)
    assert_all_answered_once(engine)
    assert fake.version == engine.weights_version == checksum(NEW_WEIGHTS)
    assert list(engine.folder.iterdir()) == []


def test_a_restarted_server_takes_the_same_memory_again(fake):
    engine = engine_of(fake, weight_transfer="ipc")
    fake.stop()
    fake.start(fake.port)
    assert_all_answered_once(engine)
    assert fake.loaded_versions == [engine.weights_version] * 2


def test_other_bits_than_those_written_end_the_run(fake):
    engine = engine_of(fake, weight_transfer="ipc")
    assert isinstance(engine.transfer, SharedMemoryTransfer)
    weights = {name: x.clone() for name, x in NEW_WEIGHTS.items()}
    engine.load(weights)
    weights["b"].add_(1)
    fake.version = "that of another run"
    with pytest.raises(EngineError, match="loaded other weights than were written"):
        assert_all_answered_once(engine)


def test_a_server_elsewhere_is_refused(fake):
    fake.facts["place"] = "GPU-1 of another machine"
    message = (
        r"weight_transfer: 'ipc'. A worker of vllm at .* is on GPU-1 of another machine, and the"
        r" policy on cpu of .*\. Allowed on different devices: file or gloo or nccl"
    )
    with pytest.raises(ConfigError, match=message):
        engine_of(fake, weight_transfer="ipc")
    assert fake.loaded_versions == []


def test_the_arguments_of_cuda_survive_the_way(monkeypatch):
    """A stand-in for CUDA's memory; its handles are those of torch.multiprocessing."""
    memory, counter, event = b"\x00\xffmem", b"count", b"\x01event"
    view = (torch.Tensor, torch.Size([2, 3]), (3, 1), 6)
    storage = (torch.storage.TypedStorage, torch.bfloat16, 0)
    tail = (memory, 4096, 512, False, counter, 8, event, True)

    class OnCuda:
        dtype, shape, device = torch.bfloat16, torch.Size([2, 3]), torch.device("cuda", 0)

        def numel(self) -> int:
            return 6

        def stride(self) -> tuple[int, int]:
            return (3, 1)

        def storage_offset(self) -> int:
            return 6

    monkeypatch.setattr(shared_memory, "reduce_tensor", lambda x: (None, (*view, *storage, *tail)))
    monkeypatch.setattr(shared_memory, "rebuild_cuda_tensor", lambda *args: args)
    handle = json.loads(json.dumps(shared_memory._handle("w", OnCuda())))
    rebuilt = shared_memory._from_handle(handle, torch.device("cuda", 1))
    assert rebuilt == (*view, *storage[:2], 1, *tail)
