"""Runs programs in sandboxes, in a process whose environment holds secrets.

Input and output are JSON: `{"backend": ..., "packages": [...], "processes": ..., "programs":
[[name, code, time limit], ...]}`, and the answers of the sandbox by name.
"""

import json
import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from grupo.envs.tools import Sandbox
from grupo.envs.tools.backends import Bubblewrap, Container, Gvisor
from grupo.envs.tools.backends.program import PYTHON_OPTIONS, host_python
from grupo.envs.tools.program_sandbox import ProgramSandbox
from grupo.util.errors import ConfigError

MEMORY_MIB, DISK_MIB = 256, 4
CONCURRENT = 8


def container():
    """The container that the environment describes, by default the backend's own."""
    fields = json.loads(os.environ.get("GRUPO_TEST_CONTAINER", "{}"))
    return Container(**{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()})


BACKENDS = {"Bubblewrap": Bubblewrap, "Gvisor": Gvisor, "Container": container}


def run_as_program(sandbox, code, time_limit, processes):
    """The answer of a sandbox for several processes, in the form that `Sandbox.run` has."""
    programs = ProgramSandbox(
        (host_python(), *PYTHON_OPTIONS, "attack.py"),
        time_limit=time_limit,
        memory_mib=MEMORY_MIB,
        disk_mib=DISK_MIB,
        processes=processes,
        backend=sandbox.backend,
    )
    run = programs.run({"attack.py": code})
    code = run.exit_code or 0
    ended = f"(ended with {128 - code if code < 0 else code})" if code else ""
    return "\n".join(filter(None, (run.printed, run.errors, ended, run.message)))


def main():
    request = json.load(sys.stdin)
    sandbox = Sandbox(
        memory_mib=MEMORY_MIB,
        disk_mib=DISK_MIB,
        backend=BACKENDS[request["backend"]](),
        packages=tuple(request["packages"]),
    )
    try:
        sandbox.check()
    except ConfigError as error:
        return {"refused": str(error)}
    # a sandbox must not inherit these
    file, pair = open(__file__), socket.socketpair()  # noqa: SIM115
    for opened in (file, *pair):
        os.set_inheritable(opened.fileno(), True)

    def run(program):
        name, code, time_limit = program
        if request["processes"]:
            return name, run_as_program(sandbox, code, time_limit, request["processes"])
        return name, replace(sandbox, time_limit=time_limit).run(code)

    with ThreadPoolExecutor(CONCURRENT) as pool:
        return dict(pool.map(run, request["programs"]))


if __name__ == "__main__":
    print(json.dumps(main()))
