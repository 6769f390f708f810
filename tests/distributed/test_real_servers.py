"""Two ranks that train with two real vLLM servers; `GRUPO_VLLM_PYTHON` names their interpreter."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from safetensors.torch import load_file
from torch import Tensor

from grupo.inference.weight_transfer import checksum
from tests.helpers import tiny_lm
from tests.helpers.paths import CHILD_ENV
from tests.helpers.real_vllm import (
    RealServers,
    answered_requests,
    load_on_server,
    weights_versions,
)

PYTHON = os.environ.get("GRUPO_VLLM_PYTHON", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="GRUPO_VLLM_PYTHON names no interpreter with vLLM"),
]

OPTIONS = ("--enforce-eager", "--no-enable-chunked-prefill", "--max-num-seqs", "64")
STEPS = 3
PROMPTS = 4  # in each step
GROUP_SIZE = 8
PER_STEP = PROMPTS * GROUP_SIZE  # requests
RECIPE = f"""
from grupo import CausalLM, DatasetTasks, KeepCheckpoints, Method, Recipe, RewardTerm, SingleTurn
from grupo.rollouts.samplers import GroupSampler

RECIPE = Recipe(
    policy=CausalLM("model", max_new_tokens=64, device="cpu"),
    env=SingleTurn(
        (RewardTerm("letters", "rewards.py:letters"),), time_limit=300.0
    ),
    tasks=DatasetTasks("tasks.jsonl"),
    eval_tasks=0,
    method=Method(sampler=GroupSampler({GROUP_SIZE})),
    max_steps={STEPS},
    prompts_per_step={PROMPTS},
    learning_rate=1e-2,
    save_every=1,
    keep=KeepCheckpoints(last={STEPS}),
)
"""
REWARDS = f"""
import os
import time
from pathlib import Path

scored = []


def letters(task, rollout):
    scored.append(rollout)
    is_second_step = len(scored) > {PROMPTS * GROUP_SIZE // 2}  # of one of two ranks
    while is_second_step and "GO_ON" in os.environ and not Path(os.environ["GO_ON"]).exists():
        time.sleep(0.1)
    return sum(map(ord, rollout.text)) / 100 / max(1, len(rollout.text))
"""


@dataclass(frozen=True)
class Trained:
    """A run that has ended.

    Args:
        folder: of the run.
        log: of all ranks.
    """

    folder: Path
    log: str

    def rollouts(self, step: int) -> list[str]:
        """The lines of the rollouts of a step."""
        lines = (self.folder / "rollouts.jsonl").read_text().splitlines()
        return [line for line in lines if json.loads(line)["step"] == step]

    def metric(self, name: str) -> list[float]:
        """A metric of each step."""
        lines = (self.folder / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line)[name] for line in lines]

    def weights(self, step: int) -> dict[str, Tensor]:
        (checkpoint,) = (self.folder / "checkpoints").glob(f"step-{step:08}*")
        return load_file(checkpoint / "weights.safetensors")


class Training:
    """The command that trains in a user's folder.

    Args:
        folder: of the user.
        name: of the run.
        ranks: number of processes.
        urls: of the servers.
        transfer: of the weights.
        more: options of the command.
        variables: of the environment.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        ranks: int,
        urls: Sequence[str],
        transfer: str,
        *more: str,
        **variables: str,
    ) -> None:
        self.run = folder / name
        self.log = folder / f"{name}.log"
        engine = f"Vllm(urls={tuple(urls)}, weight_transfer={transfer!r})"
        options = ["--run", name, "--ranks", str(ranks), "--policy.engine", engine, *more]
        environment = {**os.environ, **CHILD_ENV, "OMP_NUM_THREADS": "1", **variables}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "grupo", "train", "recipe.py:RECIPE", *options],
                cwd=folder,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def result(self) -> Trained:
        """The run, once it has ended without an error."""
        code = self.process.wait(300)
        log = self.log.read_text()
        assert code == 0, log
        return Trained(self.run, log)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a user, with a Llama of a head size that vLLM takes."""
    place = tmp_path_factory.mktemp("user")
    tiny_lm.save_model(place / "model", head_dim=32, max_position_embeddings=512)
    tasks = [json.dumps({"prompt": f"{i} + {7 * i} ="}) for i in range(12)]
    (place / "tasks.jsonl").write_text("\n".join(tasks))
    (place / "recipe.py").write_text(RECIPE)
    (place / "rewards.py").write_text(REWARDS)
    return place


@pytest.fixture(scope="module")
def servers(folder: Path) -> Iterator[list[RealServers]]:
    """Two servers, each of which can be killed without the other."""
    started = [RealServers(PYTHON, str(folder / "model"), 1, *OPTIONS) for _ in range(2)]
    for server in started:
        server.wait_until_healthy()
    yield started
    for server in started:
        server.end()


@pytest.fixture(scope="module")
def undisturbed(folder: Path, servers: list[RealServers]) -> Trained:
    """A run of two ranks with both servers, to which others are compared."""
    return Training(folder, "undisturbed", 2, urls_of(servers), "file").result()


def urls_of(servers: Sequence[RealServers]) -> list[str]:
    return [server.urls[0] for server in servers]


def num_answered(urls: Sequence[str]) -> int:
    return sum(map(answered_requests, urls))


def assert_logp_is_that_of_the_policy(trained: Trained) -> None:
    """Compares each token of each step with the forward pass of the update."""
    mismatch = trained.metric("sampler_mismatch/logp_diff_max")
    assert len(mismatch) == STEPS
    assert max(mismatch) < 1e-3


def assert_servers_hold_the_last_weights(trained: Trained, servers: Sequence[RealServers]) -> None:
    """The last rollouts are generated with the weights of the step before."""
    version = checksum(trained.weights(STEPS - 1))
    assert [weights_versions(url) for url in urls_of(servers)] == [{version}, {version}]


@pytest.mark.parametrize("transfer", ["file", "gloo", "ipc"])
def test_weights_of_each_step_reach_both_servers(folder, servers, undisturbed, transfer):
    urls = urls_of(servers)
    before = list(map(answered_requests, urls))
    trained = Training(folder, f"2 ranks {transfer}", 2, urls, transfer).result()
    after = list(map(answered_requests, urls))
    assert_logp_is_that_of_the_policy(trained)
    assert_servers_hold_the_last_weights(trained, servers)
    numbers = [a - b for a, b in zip(after, before, strict=True)]
    assert min(numbers) > 0
    assert sum(numbers) == STEPS * PER_STEP
    assert all(trained.rollouts(i + 1) == undisturbed.rollouts(i + 1) for i in range(STEPS))


def test_one_process_with_one_server_generates_the_same(folder, servers, undisturbed):
    trained = Training(folder, "1 process", 1, urls_of(servers)[:1], "file").result()
    assert_logp_is_that_of_the_policy(trained)
    assert trained.rollouts(1) == undisturbed.rollouts(1)


@pytest.mark.parametrize("transfer", ["file", "gloo"])
def test_servers_generate_with_merged_adapters(folder, servers, undisturbed, transfer):
    urls, lora = urls_of(servers), ("--policy.lora", "Lora(4, 8.0)")
    trained = Training(folder, f"lora {transfer}", 2, urls, transfer, *lora).result()
    assert_logp_is_that_of_the_policy(trained)
    versions = set.union(*map(weights_versions, urls))
    assert len(versions) == 1
    assert trained.rollouts(1) == undisturbed.rollouts(1)
    assert trained.rollouts(3) != undisturbed.rollouts(3)


@pytest.mark.parametrize(("transfer", "victim"), [("file", "api_server"), ("gloo", "EngineCore")])
def test_server_killed_during_a_step_gets_requests_again_when_it_has_the_weights(
    folder, servers, undisturbed, transfer, victim
):
    urls, killed = urls_of(servers), servers[1]
    go_on = folder / f"{victim} is back"
    answered, victim_pid = num_answered(urls), killed.processes()[victim]
    options = ("--policy.engine.max_concurrency", "1")  # a step takes seconds
    training = Training(folder, f"{victim} killed", 2, urls, transfer, *options, GO_ON=str(go_on))
    while num_answered(urls) < answered + PER_STEP + 2:  # until the second step
        assert training.process.poll() is None
    os.kill(victim_pid, signal.SIGKILL)
    killed.wait_until_restarted()
    initial = load_file(folder / "model" / "model.safetensors")
    wrong = load_on_server(urls[1], {name: x * 0.5 for name, x in initial.items()}, folder)
    assert weights_versions(urls[1]) == {wrong}
    assert answered_requests(urls[1]) == 0
    go_on.touch()
    trained = training.result()
    assert f"vllm at {urls[1]} " in trained.log
    assert re.search(r"[1-9]\d* of 16 requests are unanswered. Other servers go on.", trained.log)
    assert_logp_is_that_of_the_policy(trained)
    assert_servers_hold_the_last_weights(trained, servers)
    assert answered_requests(urls[1]) > 0  # in the third step
    assert all(trained.rollouts(i + 1) == undisturbed.rollouts(i + 1) for i in range(STEPS))
