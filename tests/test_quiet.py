"""No connection leaves the machine: neither on import nor while growing and training."""

import subprocess
import sys

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

from grupo.toy import grow
from grupo.toy.quickstart import RECIPE, SEEDLING
from grupo.training.trainer import train

small = dict(width=16, layers=1, heads=2, inner=32, batch=4, steps=2)
held_out = replace(SEEDLING.held_out, size=2)
folder = grow(replace(SEEDLING, held_out=held_out, **small), Path("model"))
policy = replace(RECIPE.policy, model=str(folder), limit=8)
train(RECIPE.but(policy=policy, held_out=held_out, steps=1, prompts=2), "run")
print("quiet")
"""


def run(folder, *arguments):
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_growing_and_training_make_no_connection(tmp_path):
    done = run(tmp_path)
    assert done.stdout.strip().endswith("quiet"), done.stderr


def test_a_connection_would_have_been_seen(tmp_path):
    assert "a connection to ('127.0.0.1', 9)" in run(tmp_path, "--control").stderr
