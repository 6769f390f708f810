"""A file in memory with a limit on its reads, because a decoder may read byte by byte."""

from io import BytesIO

from grupo.core.limits import MEDIA_READS
from grupo.util.errors import ConfigError


class CountedFile(BytesIO):
    """The bytes of an image, a video or a sound for its decoder.

    Args:
        data: Bytes of the file.

    Raises:
        ConfigError: When more is read, in more parts than `MEDIA_READS` allows.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        if self.reads > MEDIA_READS.maximum:
            raise ConfigError(
                f"a file of {len(self.getbuffer()):,} bytes takes more than"
                f" {MEDIA_READS.maximum:,} reads. Allowed: {MEDIA_READS.allowed}."
            )
        return super().read(size)
