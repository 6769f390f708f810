"""`grupo launch slurm`: the script of a job."""

import os
import shlex
import subprocess

import pytest

from grupo.distributed.slurm import SlurmJob
from grupo.inference.vllm import Vllm
from grupo.util.errors import ConfigError

# commands of a cluster: each prints its arguments, one line for each call
STUBS = {
    "scontrol": "printf 'n%s\\n' 0 1 2",
    "srun": 'echo "srun $*" >> calls; while [ "${1#--}" != "$1" ]; do shift; done; exec "$@"',
    "grupo": 'echo "grupo $*" >> calls; exec sleep 30',
    "torchrun": 'sleep 0.3; echo "GRUPO_SERVERS=$GRUPO_SERVERS"; for a in "$@"; do echo "$a"; done',
}


def run_script(folder, script):
    """Runs a script with commands of a cluster that do nothing; returns output and calls."""
    for name, text in STUBS.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    environment = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "SLURM_JOB_NODELIST": "n[0-2]",
        "SLURM_JOB_ID": "7",
    }
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    return done.stdout.splitlines(), (folder / "calls").read_text().splitlines()


@pytest.mark.parametrize("servers", [0, 1, 3])
def test_the_script_is_valid_bash(grupo, servers):
    arguments = ["--run", "runs/a b", "--nodes", "4", "--servers", str(servers)]
    code, script, err = grupo("launch", "slurm", "recipe.py:RECIPE", *arguments)
    assert (code, err) == (0, "")
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "#SBATCH --nodes=4\n" in script
    assert "--run 'runs/a b'" in script


def test_each_serving_node_serves_and_the_others_train_with_their_addresses(tmp_path):
    job = SlurmJob(nodes=3, gpus=4, servers=1, time="1:00:00", tensor_parallel=2)
    engine = "Vllm(dtype='float32')"
    train = ["recipe.py", "--run", "runs/a", "--policy.engine", engine]
    out, calls = run_script(tmp_path, job.script("models/my model", "float32", train))
    served = "grupo serve models/my model --dtype float32 --bind n2 --port 8000"
    assert f"{served} --tensor-parallel 2 --data-parallel 2" in calls
    assert out[0] == "GRUPO_SERVERS=http://n2:8000 http://n2:8001"
    assert out[1:] == [
        *shlex.split("--nnodes 2 --nproc-per-node 4 --max-restarts 20 --rdzv-backend c10d"),
        *shlex.split("--rdzv-id 7 --rdzv-endpoint n0:29500 -m -- grupo train recipe.py"),
        *("--run", "runs/a", "--policy.engine", engine, "--resume-if-exists"),
    ]
    (training,) = [call for call in calls if "torchrun" in call]
    assert "--nodelist=n0,n1 " in training


@pytest.mark.slow
def test_servers_of_a_node_are_started_again_after_an_error(tmp_path, monkeypatch):
    monkeypatch.setitem(STUBS, "grupo", 'echo "grupo $*" >> calls; exit 3')
    monkeypatch.setitem(STUBS, "torchrun", "sleep 1.5")
    script = SlurmJob(nodes=3, gpus=1, servers=1, time="1:00:00").script("m", "float32", [])
    _, calls = run_script(tmp_path, f"SERVE_PAUSE=0.5\n{script}")
    assert 1 < sum(call.startswith("grupo serve m") for call in calls) < 6


def test_servers_of_a_node_that_end_without_an_error_are_not_started_again(tmp_path, monkeypatch):
    monkeypatch.setitem(STUBS, "grupo", 'echo "grupo $*" >> calls')
    monkeypatch.setitem(STUBS, "torchrun", "sleep 1")
    script = SlurmJob(nodes=3, gpus=1, servers=1, time="1:00:00").script("m", "float32", [])
    _, calls = run_script(tmp_path, f"SERVE_PAUSE=0.1\n{script}")
    assert sum(call.startswith("grupo serve m") for call in calls) == 1


def test_servers_for_adapters_get_their_rank(grupo, home, tmp_path):
    lora = """
from dataclasses import replace
from grupo.models.lora import Lora
RECIPE = replace(RECIPE, policy=replace(RECIPE.policy, lora=Lora(4)))
"""
    (tmp_path / "lora.py").write_text((home / "recipe.py").read_text() + lora)
    arguments = ["--run", "runs/a", "--nodes", "2", "--servers", "1"]
    _, script, _ = grupo("launch", "slurm", str(tmp_path / "lora.py"), *arguments)
    assert "grupo serve model --dtype float32 --lora-rank 4 --bind" in script


def test_the_policys_model_and_dtype_are_served(grupo):
    arguments = ["--run", "runs/a", "--nodes", "2", "--servers", "1"]
    _, script, _ = grupo("launch", "slurm", "recipe.py", *arguments)
    assert "grupo serve model --dtype float32" in script
    assert "Vllm(dtype='\"'\"'float32'\"'\"', weight_transfer='\"'\"'gloo'\"'\"')" in script


def test_a_job_without_servers_trains_on_all_nodes(tmp_path):
    script = SlurmJob(nodes=3, gpus=8, servers=0, time="1-00").script("", "", ["recipe.py"])
    out, _ = run_script(tmp_path, script)
    assert out[:4] == ["GRUPO_SERVERS=", "--nnodes", "3", "--nproc-per-node"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"nodes": 0}, "nodes: 0. Allowed: 1 or more"),
        ({"servers": 2}, "servers: 2. Allowed: 0 to 1, because at least one of 2 nodes trains"),
        ({"time": "soon"}, "time: 'soon'. Allowed: HOURS:MINUTES:SECONDS"),
        ({"tensor_parallel": 3}, "tensor_parallel: 3. Allowed: a divisor of 4 GPUs"),
    ],
)
def test_impossible_jobs_are_refused(fields, message):
    with pytest.raises(ConfigError, match=message):
        SlurmJob(**{"nodes": 2, "gpus": 4, "servers": 1, "time": "1:00:00", **fields})


def test_servers_of_the_environment_replace_those_of_the_recipe(monkeypatch):
    monkeypatch.setenv("GRUPO_SERVERS", "http://b:1  http://c:1")
    assert Vllm(("http://a:1",)).server_urls == ("http://b:1", "http://c:1")
    monkeypatch.setenv("GRUPO_SERVERS", "http://b:1 http://b:1/")
    with pytest.raises(ConfigError, match=r"GRUPO_SERVERS: .* Allowed: each server once"):
        Vllm().check()
