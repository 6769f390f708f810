"""Neither imports nor training open a network connection."""

import subprocess
import sys

import pytest

PROGRAM = """
import socket, sys
from dataclasses import replace
from pathlib import Path

def connect(self, address):
    raise AssertionError(f"a connection to {address}")

socket.socket.connect = socket.socket.connect_ex = connect

import torch
torch.set_num_threads(1)
if "--control" in sys.argv:
    socket.create_connection(("127.0.0.1", 9))

from grupo.toy import train_toy_model
from grupo.toy.quickstart import RECIPE, TOY_MODEL
from grupo.training.trainer import run_training

size = dict(hidden_size=16, num_layers=1, num_heads=2, intermediate_size=32)
eval_tasks = replace(TOY_MODEL.eval_tasks, size=2)
toy_model = replace(TOY_MODEL, eval_tasks=eval_tasks, prompts_per_step=4, max_steps=2, **size)
folder = train_toy_model(toy_model, Path("model"))
policy = replace(RECIPE.policy, model=str(folder), max_new_tokens=8)
recipe = RECIPE.replace(policy=policy, eval_tasks=eval_tasks, max_steps=1, prompts_per_step=2)
run_training(recipe, "run")
print("quiet")
"""


def run(folder, *arguments):
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_training_opens_no_connection(tmp_path):
    done = run(tmp_path)
    assert done.stdout.strip().endswith("quiet"), done.stderr


@pytest.mark.slow
def test_an_opened_connection_is_detected(tmp_path):
    assert "a connection to ('127.0.0.1', 9)" in run(tmp_path, "--control").stderr
