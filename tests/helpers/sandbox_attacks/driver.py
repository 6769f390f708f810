"""Runs programs in sandboxes, in a process whose environment holds secrets.

Input and output are JSON: `{"backend": ..., "packages": [...], "programs": [[name, code, time
limit], ...]}`, and the answers of the sandbox by name.
"""

import json
import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from grupo.envs.tools import Sandbox
from grupo.envs.tools.backends import Bubblewrap, Container, Gvisor
from grupo.util.errors import ConfigError

MEMORY_MIB, DISK_MIB = 256, 4
CONCURRENT = 8


def container():
    """The container that the environment describes, by default the backend's own."""
    fields = json.loads(os.environ.get("GRUPO_TEST_CONTAINER", "{}"))
    return Container(**{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()})


BACKENDS = {"Bubblewrap": Bubblewrap, "Gvisor": Gvisor, "Container": container}


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
        return name, replace(sandbox, time_limit=time_limit).run(code)

    with ThreadPoolExecutor(CONCURRENT) as pool:
        return dict(pool.map(run, request["programs"]))


if __name__ == "__main__":
    print(json.dumps(main()))
