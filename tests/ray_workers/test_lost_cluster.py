"""A local cluster whose raylet is killed: calls fail within seconds, with the cause."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("ray", reason="Ray is not installed: make test-ray")

from tests.helpers.paths import CHILD_ENV

PROGRAM = """
import os, signal, subprocess, time
from grupo.envs import RewardTerm, SingleTurn
from grupo.ray_workers import OnRay
from tests.helpers.scripted_play import play
from tests.helpers.training_components import fine

env = OnRay(SingleTurn((RewardTerm("part", fine),)), cpus=0.5, tries=2)
env.check()
children = ["ps", "-o", "pid=,comm=", "--ppid", str(os.getpid())]
lines = subprocess.run(children, capture_output=True, text=True, check=True).stdout.splitlines()
(raylet,) = [int(line.split()[0]) for line in lines if line.split()[1] == "raylet"]
os.kill(raylet, signal.SIGKILL)
begun = time.monotonic()
error = ""  # its actor answers until the raylet is missed
while not error and time.monotonic() - begun < 60:
    error = play(env, ["a"])[0].error
    time.sleep(0.2)
print(round(time.monotonic() - begun), error)
os._exit(0)  # without a raylet, Ray has nothing to end
"""


@pytest.mark.skipif(sys.platform != "linux", reason="finds the raylet by ps of Linux")
def test_calls_fail_in_seconds_if_the_raylet_of_a_local_cluster_is_killed():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **CHILD_ENV, "RAY_TMPDIR": "/tmp"},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    last = done.stdout.splitlines()[-1]
    seconds, error = last.split(" ", 1)
    assert error == (
        "task key, rollout 0: the actor of Ray was lost 2 times:"
        " no machine of the Ray cluster is alive"
    ), done.stderr
    assert int(seconds) < 40
