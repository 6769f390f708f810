"""Weights over a process group: complete, or the server has no version."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
import torch

from grupo.inference import vllm_worker
from grupo.inference.engine_errors import EngineError
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_engine import VllmEngine
from grupo.inference.vllm_worker import WeightLoaderExtension
from grupo.inference.vllm_worker.digest import WeightDigest
from grupo.inference.vllm_worker.transfer import InterruptedTransfer, receive_tensors
from grupo.inference.weight_sender import ProcessGroupTransfer
from grupo.inference.weight_transfer import checksum
from grupo.util.errors import ConfigError
from tests.helpers.fake_vllm import FakeServer, receive_correctly
from tests.helpers.paths import CHILD_ENV
from tests.helpers.vllm_fixtures import (
    NEW_WEIGHTS,
    STOP_CONDITIONS,
    WEIGHTS,
    assert_all_answered_once,
    engine_of,
)

CPU = torch.device("cpu")
LARGE = {f"w{i}": torch.full((1 << 20,), float(i)) for i in range(8)}
SENDER = """
import sys, time
import torch
from grupo.inference import weight_sender
from grupo.inference.vllm_worker.digest import WeightDigest
from grupo.inference.vllm_worker.transfer import receive_tensors
from grupo.inference.weight_sender import ProcessGroupTransfer

weights = {f"w{i}": torch.full((1 << 20,), float(i)) for i in range(8)}
parts = weight_sender.byte_parts

def slow_parts(tensor):
    time.sleep(0.2)
    yield from parts(tensor)

weight_sender.byte_parts = slow_parts
transfer = ProcessGroupTransfer("http://127.0.0.1:1", torch.float32)
print(*transfer.publish(weights).args, flush=True)
time.sleep(60)
"""


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    server = FakeServer()
    yield server
    server.stop()


@pytest.fixture
def transfer() -> Iterator[ProcessGroupTransfer]:
    transfer = ProcessGroupTransfer("http://127.0.0.1:1", torch.float32)
    yield transfer
    transfer.close()


def received(address, port, version):
    digest = WeightDigest()
    tensors = receive_tensors(address, port, version, CPU, digest)
    return dict(tensors), digest.hexdigest()


class Worker(WeightLoaderExtension):
    """A worker whose model is a dictionary."""

    def __init__(self):
        self.device = CPU
        self.model = {}

    def _grupo_load(self, weights):
        for name, tensor in weights:
            self.model[name] = tensor


def test_all_tensors_arrive_with_their_bits_and_checksum(transfer):
    weights = {
        "b": torch.randn(3, 2),
        "a": torch.arange(4),
        "c.d": torch.zeros(0, 5),
        "large": torch.randn(1 << 16),
        "scalar": torch.tensor(2.0),
    }
    published = transfer.publish(weights)
    tensors, digest = received(*published.args, published.version)
    assert list(tensors) == sorted(weights)
    assert all(torch.equal(tensors[name], weights[name]) for name in weights)
    assert digest == published.version == checksum(weights)


def test_a_tensor_is_sent_in_parts(transfer, monkeypatch):
    monkeypatch.setattr(vllm_worker.transfer, "PART_BYTES", 1000)
    published = transfer.publish({"w": torch.randn(999)})
    assert received(*published.args, published.version)[1] == published.version


def test_several_workers_receive_at_the_same_time(transfer):
    published = transfer.publish(LARGE)
    digests = []
    threads = [
        threading.Thread(
            target=lambda: digests.append(received(*published.args, published.version)[1])
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert digests == [published.version] * 4


def test_weights_that_the_sender_no_longer_has_are_not_received(transfer):
    old = transfer.publish(WEIGHTS)
    new = transfer.publish(NEW_WEIGHTS)
    with pytest.raises(InterruptedTransfer, match=rf"sender has weights {new.version}, not"):
        received(*old.args, old.version)


def test_equal_weights_are_loaded_once(transfer):
    published = transfer.publish(WEIGHTS)
    worker = Worker()
    assert worker.grupo_receive(*published.args, published.version) == {
        "version": published.version
    }
    worker.model.clear()
    worker.grupo_receive(*published.args, published.version)
    assert worker.model == {}
    worker.grupo_discard()
    worker.grupo_receive(*published.args, published.version)
    assert worker.model.keys() == WEIGHTS.keys()


@pytest.mark.slow
def test_a_sender_that_is_killed_leaves_the_worker_without_version():
    command = [sys.executable, "-c", SENDER]
    environment = {**os.environ, **CHILD_ENV}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as sender:
        assert sender.stdout
        address, port = sender.stdout.readline().split()
        worker = Worker()
        worker.grupo_version = "old"
        threading.Timer(0.7, sender.send_signal, (signal.SIGKILL,)).start()
        start = time.monotonic()
        result = worker.grupo_receive(address, int(port), checksum(LARGE))
    assert "RuntimeError" in result["interrupted"]
    assert time.monotonic() - start < 10
    assert 0 < len(worker.model) < len(LARGE)
    assert worker.grupo_version == ""


@pytest.mark.slow
def test_the_program_ends_without_an_error_while_weights_are_served():
    receive = """
published = transfer.publish(weights)
digest = WeightDigest()
cpu = torch.device("cpu")
list(receive_tensors(*published.args, published.version, cpu, digest))
"""
    script = SENDER.replace("time.sleep(60)", receive).replace("time.sleep(0.2)", "pass")
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            env={**os.environ, **CHILD_ENV},
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_sender_that_does_not_exist_is_an_interrupted_transfer(monkeypatch):
    monkeypatch.setattr(vllm_worker.transfer, "TRANSFER_TIMEOUT", timedelta(seconds=1))
    worker = Worker()
    assert "interrupted" in worker.grupo_receive("127.0.0.1", 9, "f00")
    assert worker.grupo_version == ""


def test_a_cut_transfer_is_repeated_before_any_request(fake):
    attempts = []

    def cut_at_first(address: str, port: int, version: str) -> dict[str, str]:
        attempts.append(version)
        if len(attempts) == 1:
            return {"interrupted": "Connection closed by peer"}
        return receive_correctly(address, port, version)

    fake.receive_weights = cut_at_first
    engine = engine_of(fake, weight_transfer="gloo")
    assert fake.loaded_versions == ["", engine.weights_version]
    assert_all_answered_once(engine)


def test_transfers_that_are_always_cut_end_the_run(fake):
    fake.receive_weights = lambda *args: {"interrupted": "Connection closed by peer"}
    message = r"received the weights in part \(Connection closed by peer\).* Gave up after 2"
    with pytest.raises(EngineError, match=message):
        engine_of(fake, weight_transfer="gloo", max_failures=2)
    assert fake.version == ""


def test_servers_receive_each_update_over_the_process_group():
    fakes = [FakeServer(), FakeServer()]
    spec = Vllm(tuple(fake.url for fake in fakes), weight_transfer="gloo")
    engine = VllmEngine(spec, "", STOP_CONDITIONS)
    for weights in (WEIGHTS, NEW_WEIGHTS):
        engine.load(weights)
        assert_all_answered_once(engine)
    assert [len(fake.loaded_versions) for fake in fakes] == [2, 2]
    assert {fake.version for fake in fakes} == {engine.weights_version}
    assert list(engine.folder.iterdir()) == []
    engine.close()
    for fake in fakes:
        fake.stop()


def test_an_old_extension_is_named(fake):
    fake.facts["extension"] = "1"
    with pytest.raises(ConfigError, match="extension is '1', expected '4'"):
        engine_of(fake)


def test_another_way_of_transfer_is_refused():
    with pytest.raises(
        ConfigError, match=r"weight_transfer: 'mpi'. Allowed: file or gloo or nccl or ipc"
    ):
        Vllm(weight_transfer="mpi")


def test_nccl_needs_a_policy_on_a_gpu(fake):
    with pytest.raises(ConfigError, match=r"'nccl'\. Allowed with a policy on cpu: file or gloo"):
        engine_of(fake, weight_transfer="nccl")
