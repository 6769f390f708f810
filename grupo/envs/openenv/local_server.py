"""Environment servers of OpenEnv that this process starts, one for each application."""

import shutil
import sys
import tempfile
import weakref
from functools import cache
from pathlib import Path
from threading import Lock

from grupo.inference.engine_errors import EngineError, TransientServerError
from grupo.inference.server_process import ManagedServer
from grupo.util.errors import ConfigError

START_SECONDS = 120.0  # until the first answer; the import of OpenEnv takes seconds
_lock = Lock()  # several rollouts may find that the server has ended


def local_url(app: str) -> str:
    """The URL of a server for an application; the server is started if none is running.

    Args:
        app: The application as uvicorn takes it, `module:attribute`, from the current folder.

    Raises:
        ConfigError: The server does not start.
    """
    with _lock:
        server = _server_of(app)
        try:
            server.wait_ready()
        except TransientServerError:  # it has ended since the last call
            server.handle_failure()
            _start_again(server, app)
        except EngineError as error:
            raise ConfigError(f"address: {app!r}: {error}") from error
        return server.url


def _start_again(server: ManagedServer, app: str) -> None:
    try:
        server.wait_ready()
    except (TransientServerError, EngineError) as error:
        raise ConfigError(f"address: {app!r}: {error}") from error


@cache
def _server_of(app: str) -> ManagedServer:
    """The server of an application; its process ends with this one."""
    folder = Path(tempfile.mkdtemp(prefix="grupo-openenv-"))
    options = ["--host", "127.0.0.1", "--port", "{port}", "--log-level", "warning"]
    command = [sys.executable, "-m", "uvicorn", app, *options]
    server = ManagedServer(
        command, {}, folder, port=0, startup_timeout=START_SECONDS, name="the server of OpenEnv"
    )
    weakref.finalize(server, shutil.rmtree, folder, ignore_errors=True)  # also at the process's end
    return server
