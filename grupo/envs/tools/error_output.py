"""The error output of a program, of which only the end is kept."""

import os
from threading import Thread

KEPT_BYTES = 4096
CHUNK_BYTES = 1 << 16
END_SECONDS = 0.5  # in which a program that failed has closed its error output


class ErrorOutput:
    """A pipe for the error output of a program; a thread reads it, and keeps its last bytes.

    `file` is the end to which the program writes, for the program alone.
    """

    def __init__(self) -> None:
        read_end, write_end = os.pipe()
        self.file = os.fdopen(write_end, "wb")
        self._kept = b""
        self._thread = Thread(target=self._read, args=(read_end,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close this process's copy of `file`; the thread ends with the program."""
        self.file.close()

    def last_line(self) -> str:
        """The last line of a program that has ended; "" if it wrote none."""
        self.close()
        self._thread.join(END_SECONDS)
        lines = self._kept.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def _read(self, read_end: int) -> None:
        with os.fdopen(read_end, "rb", buffering=0) as pipe:
            while chunk := pipe.read(CHUNK_BYTES):
                self._kept = (self._kept + chunk)[-KEPT_BYTES:]
