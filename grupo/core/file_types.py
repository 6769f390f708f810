"""Types of images, videos and sounds, by the first bytes of their files."""

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", 0, "image/png"),
    (b"\xff\xd8\xff", 0, "image/jpeg"),
    (b"GIF8", 0, "image/gif"),
    (b"BM", 0, "image/bmp"),
    (b"WEBP", 8, "image/webp"),
    (b"WAVE", 8, "audio/wav"),
    (b"ftyp", 4, "video/mp4"),
    (b"\x1aE\xdf\xa3", 0, "video/webm"),
    (b"fLaC", 0, "audio/flac"),
    (b"OggS", 0, "audio/ogg"),
    (b"ID3", 0, "audio/mpeg"),
    (b"\xff\xfb", 0, "audio/mpeg"),
)


def sniff_type(data: bytes) -> str:
    r"""The type of a file by its first bytes; "" if it is unknown.

    >>> sniff_type(b"\xff\xd8\xff\xe0"), sniff_type(b"text")
    ('image/jpeg', '')
    """
    matches = (kind for mark, start, kind in _SIGNATURES if data.startswith(mark, start))
    return next(matches, "")
