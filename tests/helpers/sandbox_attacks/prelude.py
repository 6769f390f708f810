# ruff: noqa: F401 (a template: attacks use these modules, and `P` is defined before it)
"""Executed before each attack, inside and outside of the sandbox.

`P` holds the test's parameters: paths of planted files, ports of listeners, numbers of calls.
"""

import asyncio
import ctypes
import errno
import hashlib
import http.client
import json
import mmap
import multiprocessing
import os
import resource
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

LIBC = ctypes.CDLL(None, use_errno=True)


def call(name, *arguments):
    """The result of a system call; `OSError` with its errno if it fails."""
    values = [value if isinstance(value, bytes) else ctypes.c_long(value) for value in arguments]
    ctypes.set_errno(0)
    result = LIBC.syscall(ctypes.c_long(P["numbers"][name]), *values)
    if result == -1 and ctypes.get_errno():
        raise OSError(ctypes.get_errno(), name)
    return result


def reach(name, *arguments):
    """Refused only by a filter or for want of a privilege, not for wrong arguments."""
    try:
        call(name, *arguments)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOSYS, errno.EACCES):
            raise


def read(path):
    with open(path, "rb") as file:
        return file.read(1 << 16)


def open_for_writing(path):
    os.close(os.open(path, os.O_WRONLY))


def temporary_file_in(folder):
    """A file without a name: it needs the right to write and leaves nothing behind."""
    os.close(os.open(folder, os.O_TMPFILE | os.O_RDWR))


def is_secret(value):
    text = value if isinstance(value, bytes) else str(value).encode(errors="replace")
    return any(hashlib.sha256(part).hexdigest() == P["secret_sha256"] for part in text.split(b"="))


def attempt(code, refusals):
    """ "succeeded", "refused: ..." or "broken: ..."."""
    try:
        exec(compile(code, "<attack>", "exec"), dict(globals()))
        return "succeeded"
    except BaseException as error:
        names = {kind.__name__ for kind in type(error).__mro__}
        kind = "refused" if names & set(refusals) else "broken"
        return f"{kind}: {error!r}"
