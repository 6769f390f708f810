"""The host of the attacks: planted secrets, listeners, and the users that start the sandbox."""

import getpass
import hashlib
import json
import os
import re
import secrets
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import grupo
from grupo.envs.tools.seccomp import syscall_number
from tests.helpers.sandbox_attacks.attack import Attack
from tests.helpers.sandbox_attacks.programs import control_program, verdicts
from tests.helpers.sandbox_attacks.table import ATTACKS

ROOT = Path(grupo.__file__).parent.parent
DRIVER = Path(__file__).with_name("driver.py")
ORDINARY_UID = "4321"
PLANTED = {
    "ssh_key": "home/.ssh/id_ed25519",
    "aws_credentials": "home/.aws/credentials",
    "hf_token": "home/.cache/huggingface/token",
    "run_journal": "runs/1/journal.jsonl",
    "grader_tests": "runs/1/tests/test_hidden.py",
    "other_rollout": "runs/1/rollouts/2/answer.py",
}
# calls that libseccomp 2.5 does not know; they have the same number on every machine
NEW_SYSCALLS = {"statmount": 457, "listmount": 458, "lsm_list_modules": 461}
MODULES = {
    "planted_in_folder.py": "",
    "path/planted_in_pythonpath.py": "",
    "path/sitecustomize.py": "import sys\nsys.modules['planted_sitecustomize'] = sys\n",
}
# makes a Python below a closed folder such as /root readable, in a mount namespace of its own
OPEN_CLOSED_FOLDER = """\
set -e
mount --rbind {prefix} /mnt
mount -t tmpfs -o mode=755 tmpfs {closed}
mkdir -p {prefix}
mount --rbind /mnt {prefix}
umount -l /mnt
exec "$@"
"""


class Page(BaseHTTPRequestHandler):
    """A page that answers every request."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        """Nothing is logged."""


@contextmanager
def planted_host(folder: Path) -> Generator[dict[str, Any]]:
    """The parameters of the attacks, while the planted files and the listeners exist."""
    file_secret, folder = secrets.token_hex(), folder.resolve()
    for name in (*PLANTED.values(), *MODULES):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MODULES.get(name, file_secret))
    for parent in (folder, *folder.parents):  # pytest's folders are closed to other users
        if parent.stat().st_uid == os.getuid() and parent.is_relative_to("/tmp/"):
            parent.chmod(0o755)
    library = folder / "library.so"
    library.symlink_to(_c_library())
    secret = secrets.token_hex()
    with ExitStack() as stack:
        yield {
            "planted": {name: str(folder / path) for name, path in PLANTED.items()}
            | {"docker_socket": str(folder / "docker.sock"), "library": str(library)},
            "hard_link": str(folder / "hard_link"),
            "secret_in_files": file_secret,
            "secret_sha256": hashlib.sha256(secret.encode()).hexdigest(),
            "test_file": str(ROOT / "tests" / "test_layers.py"),
            "package_file": str(ROOT / "grupo" / "__init__.py"),
            "numbers": _syscall_numbers(),
            "driver_pid": os.getpid(),
            "marker": "sandbox_attacks",
            "proxy": "http://user:password@127.0.0.1:1",
            "folder": str(folder),
            "home": str(folder / "home"),
            "user": getpass.getuser(),
            "hostname": socket.gethostname(),
            "uid": os.getuid(),
            "secret": secret,
            **_listeners(stack, folder),
        }


def program_parameters(host: dict[str, Any]) -> dict[str, Any]:
    """The parameters that a program reads: all but the secret itself."""
    return {name: value for name, value in host.items() if name != "secret"}


def secret_environment(host: dict[str, Any]) -> dict[str, str]:
    """An environment with secrets and with hooks of Python."""
    variables = {
        "GRUPO_TEST_SECRET": host["secret"],
        "http_proxy": host["proxy"],
        "PYTHONPATH": f"{host['folder']}/path:{ROOT}",
        "PYTHONSTARTUP": f"{host['folder']}/planted_in_folder.py",
        "PYTHONDONTWRITEBYTECODE": "1",
        "USER": host["user"],
        "HOME": host["home"],
    }
    kept = ("PATH", "GRUPO_TEST_CONTAINER")
    return {**{name: os.environ[name] for name in kept if name in os.environ}, **variables}


def run_driver(
    host: dict[str, Any],
    backend: str,
    programs: Sequence[tuple[str, str, float]],
    user: str,
    packages: Sequence[str] = (),
    processes: int | None = None,
) -> dict[str, str]:
    """The sandbox's answer to each program; "refused" with the reason if the backend is missing."""
    request = {
        "backend": backend,
        "packages": packages,
        "processes": processes,
        "programs": programs,
    }
    process = subprocess.run(
        as_user(user, [sys.executable, str(DRIVER)]),
        input=json.dumps(request),
        cwd=host["folder"],
        env=secret_environment(host),
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise RuntimeError(process.stderr[-2000:])
    return json.loads(process.stdout)


def run_controls(host: dict[str, Any], attacks: Sequence[Attack]) -> dict[str, str]:
    """The verdict of each attack outside of a sandbox.

    For root, process 1 is the one that starts them: the machine's own is closed even to root.
    """
    is_root = os.getuid() == 0
    parameters = program_parameters(host) | {"driver_pid": 1 if is_root else os.getpid()}
    pid_namespace = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    code = control_program(attacks, parameters)
    process = subprocess.run(
        [
            *(pid_namespace if is_root else ()),
            *(sys.executable, "-c", code, host["secret"], host["marker"]),
        ],
        cwd=host["folder"],
        env=secret_environment(host),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
    )
    return verdicts(process.stdout)


def as_user(user: str, command: Sequence[str]) -> list[str]:
    """A command as this user, or as an ordinary user, which only root can do."""
    if user == "this user":
        return list(command)
    drop = ("setpriv", f"--reuid={ORDINARY_UID}", f"--regid={ORDINARY_UID}", "--clear-groups")
    prefix = Path(sys.base_prefix)
    closed = closed_folder(prefix)
    if closed is None:
        return [*drop, *command]
    script = OPEN_CLOSED_FOLDER.format(
        prefix=shlex.quote(str(prefix)), closed=shlex.quote(str(closed))
    )
    return ["unshare", "--mount", "sh", "-c", script, "sh", *drop, *command]


def closed_folder(path: Path) -> Path | None:
    """The first folder above a path that an ordinary user may not enter."""
    folders = reversed(path.parents)
    return next((folder for folder in folders if not folder.stat().st_mode & 0o001), None)


def _syscall_numbers() -> dict[str, int]:
    """The number of each system call that an attack names."""
    codes = "\n".join(attack.code for attacks in ATTACKS.values() for attack in attacks)
    names = re.findall(r"\b(?:call|reach)\(['\"](\w+)['\"]", codes)
    numbers = {name: syscall_number(name) for name in names}
    return NEW_SYSCALLS | {name: number for name, number in numbers.items() if number is not None}


def _c_library() -> str:
    lines = Path("/proc/self/maps").read_text().splitlines()
    return next(line.split()[-1] for line in lines if "libc.so" in line or "libc-" in line)


def _listeners(stack: ExitStack, folder: Path) -> dict[str, Any]:
    """Listeners on loopback and on Unix sockets, and their addresses."""
    names = [f"\0grupo-{secrets.token_hex(8)}" for _ in range(2)]
    tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    tcp6 = stack.enter_context(socket.create_server(("::1", 0), family=socket.AF_INET6))
    udp = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
    udp.bind(("127.0.0.1", 0))
    for address in (names[0], str(folder / "docker.sock")):
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(address)
        listener.listen()
    datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    datagrams.bind(names[1])
    server = stack.enter_context(HTTPServer(("127.0.0.1", 0), Page))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stack.callback(server.shutdown)
    return {
        "tcp_port": tcp.getsockname()[1],
        "tcp6_port": tcp6.getsockname()[1],
        "udp_port": udp.getsockname()[1],
        "http_port": server.server_port,
        "abstract_name": names[0],
        "abstract_datagram_name": names[1],
    }
