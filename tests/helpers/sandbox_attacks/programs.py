"""Attacks as programs: one for each category, and one that makes the controls."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.helpers.sandbox_attacks.attack import Attack

PRELUDE = Path(__file__).with_name("prelude.py").read_text()
PREAMBLE = "import json\nP = json.loads({parameters!r})\nATTACKS = json.loads({attacks!r})\n"
# what one attack leaves behind, files and descriptors, must not refuse the next one
ATTEMPT_ALL = """
import gc, shutil
for name, code, refusals in ATTACKS:
    verdict = attempt(code, refusals)
    gc.collect()
    os.closerange(3, 64)
    for entry in os.scandir("/tmp"):
        shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)
    print(json.dumps([name, verdict]), flush=True)
"""
# each control has a process and a temporary folder of its own, and a file as its output
ATTEMPT_EACH = """
SECRET = os.environ["GRUPO_TEST_SECRET"]
inherited = open(P["test_file"]), socket.socketpair()
for name, code, refusals in ATTACKS:
    reader, writer = os.pipe()
    folder = tempfile.mkdtemp(dir=P["folder"])
    pid = os.fork()
    if not pid:
        signal.alarm(5)
        os.close(0), os.close(1)
        os.open(os.devnull, os.O_RDONLY), os.open(f"{folder}/output", os.O_CREAT | os.O_WRONLY)
        tempfile.tempdir = folder
        os.write(writer, attempt(code, refusals).encode())
        os._exit(0)
    os.close(writer)
    verdict = b""
    while chunk := os.read(reader, 9999):
        verdict += chunk
    os.close(reader)
    verdict = verdict.decode() or f"broken: exit status {os.waitpid(pid, 0)[1]}"
    print(json.dumps([name, verdict]), flush=True)
"""


def attack_program(attacks: Sequence[Attack], parameters: Mapping[str, Any]) -> str:
    """A program that makes attacks one after another and prints a verdict for each."""
    return _preamble(attacks, parameters) + ATTEMPT_ALL


def control_program(attacks: Sequence[Attack], parameters: Mapping[str, Any]) -> str:
    """The same outside of a sandbox, each in a process of its own."""
    return _preamble(attacks, parameters) + ATTEMPT_EACH


def verdicts(output: str) -> dict[str, str]:
    """The verdict of each attack in the output of such a program."""
    lines = [line for line in output.splitlines() if line.startswith("[")]
    return dict(map(json.loads, lines))


def _preamble(attacks: Sequence[Attack], parameters: Mapping[str, Any]) -> str:
    table = json.dumps([(attack.name, attack.code, attack.refusals) for attack in attacks])
    return PREAMBLE.format(parameters=json.dumps(parameters), attacks=table) + PRELUDE
