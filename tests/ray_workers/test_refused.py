"""Recipes that cannot run on Ray end before the run, with one message."""

import json
import os
import subprocess
import sys
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from grupo.envs import MultiplayerEnv, RewardTerm, SingleTurn
from grupo.ray_workers import OnRay, cluster
from grupo.ray_workers.worker_pool import pool_of
from grupo.util.errors import ConfigError
from tests.helpers.paths import CHILD_ENV
from tests.helpers.recipe_files import RECIPE_FILES
from tests.helpers.training_components import LetterGame, fine

ENV = SingleTurn((RewardTerm("part", fine),))
needs_ray = pytest.mark.skipif(
    find_spec("ray") is None, reason="Ray is not installed: make test-ray"
)


def message_of(*options: str, folder: Path) -> tuple[str, float]:
    """The message of `grupo ray.toml` with these options, and the seconds that it took."""
    (folder / "ray.toml").write_text(RECIPE_FILES["ray.toml"])
    (folder / "rewards.py").write_text("def digits(task, rollout):\n    return 0.0\n")
    rows = [{"prompt": f"{i} + 1 =", "answer": str(i + 1)} for i in range(20)]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "grupo", "ray.toml", *options],
        env={**os.environ, **CHILD_ENV, "RAY_TMPDIR": "/tmp"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr, time.monotonic() - begun


def test_ray_that_is_not_installed_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # an import of it raises ImportError
    pool_of.cache_clear()
    with pytest.raises(ConfigError) as error:
        OnRay(ENV).check()
    assert str(error.value) == 'Ray is not installed. Install it: pip install "grupo[ray]".'


@pytest.mark.slow
def test_importing_grupo_and_reading_a_recipe_do_not_import_ray(tmp_path):
    (tmp_path / "ray.toml").write_text(RECIPE_FILES["ray.toml"])
    program = (
        "import sys, grupo.cli.main, grupo.ray_workers\n"
        "from grupo.config.recipe_files import load_recipe_file\n"
        "from pathlib import Path\n"
        "sys.path.append('.')\n"
        "load_recipe_file(Path('ray.toml'))\n"
        "print('ray' in sys.modules)"
    )
    (tmp_path / "rewards.py").write_text("def digits(task, rollout):\n    return 0.0\n")
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **CHILD_ENV},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize("env", [MultiplayerEnv(LetterGame), OnRay(ENV)], ids=["game", "on Ray"])
def test_environments_that_cannot_be_placed_are_refused(env):
    with pytest.raises(ConfigError, match=rf"env: {type(env).__name__}. Allowed with OnRay: "):
        OnRay(env)


@pytest.mark.parametrize("address", ["", "somewhere", "ray://a:1", "a:1/", "a: 1", "http://a:1"])
def test_addresses_of_no_cluster_are_refused(address):
    with pytest.raises(ConfigError, match=r"Allowed: local, auto or HOST:PORT\."):
        cluster.check_address(address, "address")


@needs_ray
def test_more_cpus_than_the_cluster_has_are_refused(tmp_path):
    message, _ = message_of("--env.workers", "1000", folder=tmp_path)
    assert message.startswith(
        "grupo: env.workers: 1000 actors with cpus=1 each need, 1000 CPUs together. Allowed: at"
    )


@needs_ray
@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("127.0.0.1:9", "no Ray cluster answers at 127.0.0.1:9 ([Errno 111] Connection refused)."),
        ("auto", "no connection to Ray at 'auto': Could not find any running Ray instance."),
    ],
)
def test_a_cluster_that_cannot_be_reached_is_refused_in_time(address, problem, tmp_path):
    pool_of.cache_clear()
    import_module("ray").shutdown()  # "auto" would find the cluster of the tests before
    message, seconds = message_of("--env.address", address, folder=tmp_path)
    assert message.startswith(f"grupo: address: {problem}")
    assert seconds < cluster.CONNECT_SECONDS
