"""Agents that are programs: their environment, their ends, and what they leave behind."""

import os
import shlex
import sys
import time

import pytest

from grupo.core.types import Task
from grupo.envs import RewardTerm
from grupo.envs.proxy import ProxyEnv
from tests.helpers.scripted_play import play

TASK = Task("key", "two words", 3, columns={"size": 4})
LENGTH = RewardTerm("length", lambda task, rollout: float(rollout.length))
PROGRAM = """
import json, os, sys, urllib.request

def ask(text):
    body = json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
    headers = {"Content-Type": "application/json"}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]

"""


@pytest.fixture
def run(tmp_path):
    """The rollout of a program with these lines, which is given texts as answers."""

    def play_program(lines, *texts, arguments="", **fields):
        path = tmp_path / "agent.py"
        path.write_text(PROGRAM + lines)
        command = f"{shlex.join([sys.executable, str(path)])} {arguments}"
        env = ProxyEnv(command, rewards=(LENGTH,), **fields)
        (rollout,) = play(env, texts, task=TASK)
        return rollout

    return play_program


def test_a_program_reads_its_task_and_the_address(run):
    lines = """
task = json.loads(sys.stdin.readline())
ask(f"{task['prompt']}, {task['columns']['size']}, {sys.argv[1]}")
assert os.environ["OPENAI_API_KEY"] in sys.argv[2]
"""
    rollout = run(lines, "yes", arguments="'{prompt}' {base_url}")
    assert rollout.turns[0][0][0]["content"] == "two words, 4, two words"
    assert (rollout.error, rollout.reward) == ("", 3.0)


def test_a_program_that_dies_loses_its_rollout_with_its_last_words(run):
    rollout = run("ask('one'); sys.exit('out of paper')", "yes")
    assert "the agent ended with status 1: out of paper" in rollout.error


def test_a_program_that_is_killed_loses_its_rollout(run):
    rollout = run("ask('one'); import signal; os.kill(os.getpid(), signal.SIGKILL)", "yes")
    assert "the agent ended with status -9" in rollout.error


def test_a_program_that_hangs_is_killed_with_all_its_processes(run, tmp_path):
    lines = f"""
import subprocess
child = subprocess.Popen(["sleep", "60"])
open({str(tmp_path / "pid")!r}, "w").write(str(child.pid))
ask("one")
child.wait()
"""
    rollout = run(lines, "yes", time_limit=2.0)
    assert "neither called the policy nor ended within 2 s, after 1 calls" in rollout.error
    child = int((tmp_path / "pid").read_text())
    assert ends_soon(child)


def test_a_process_that_a_program_leaves_behind_is_killed(run, tmp_path):
    lines = f"""
import subprocess
child = subprocess.Popen(["sleep", "60"])
open({str(tmp_path / "pid")!r}, "w").write(str(child.pid))
ask("one")
"""
    rollout = run(lines, "yes", time_limit=30.0)  # less than the sleep
    assert rollout.error == ""
    assert ends_soon(int((tmp_path / "pid").read_text()))


def ends_soon(process):
    for _ in range(100):
        try:
            os.kill(process, 0)
            with open(f"/proc/{process}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    return False
