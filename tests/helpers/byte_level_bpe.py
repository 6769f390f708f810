"""Byte-level BPE in a few lines, from the vocabulary and the merges of a GGUF file alone."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import gguf
import regex

# GPT-2 writes each byte as a printable character: those that are printable as themselves, the
# others, in their order, as the characters from 256 on.
_PRINTABLE = (*range(33, 127), *range(161, 173), *range(174, 256))
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
BYTE_LETTERS = {
    byte: chr(byte if byte in _PRINTABLE else 256 + _OTHERS.index(byte)) for byte in range(256)
}
GPT2_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CONTROL = 3  # in tokenizer.ggml.token_type: a special token


class ByteLevelBPE:
    """Token ids of a text, as `tokenizer.ggml.*` in a GGUF file defines them.

    Args:
        file: The GGUF file, whose `tokenizer.ggml.model` is "gpt2" and whose `tokenizer.ggml.pre`
            is "smollm": each digit is a word of its own, and GPT-2's pattern splits what lies
            between digits. The digit is split off first, so that spaces before it stay together.
    """

    def __init__(self, file: Path) -> None:
        fields = gguf.GGUFReader(file).fields
        name = "tokenizer.ggml"
        assert fields[f"{name}.model"].contents() == "gpt2"
        assert fields[f"{name}.pre"].contents() == "smollm"
        tokens = fields[f"{name}.tokens"].contents()
        kinds = fields[f"{name}.token_type"].contents()
        self.ids = {token: number for number, token in enumerate(tokens)}
        self.special = [t for t, kind in zip(tokens, kinds, strict=True) if kind == CONTROL]
        merges = fields[f"{name}.merges"].contents()
        self.ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}

    def __call__(self, text: str) -> list[int]:
        return [self.ids[token] for part in self._parts(text) for token in self._tokens(part)]

    def _parts(self, text: str) -> list[str]:
        """The special tokens in a text, and what lies between them; the longest token wins."""
        longest_first = sorted(self.special, key=len, reverse=True)
        return re.split(f"({'|'.join(map(re.escape, longest_first))})", text)

    def _tokens(self, part: str) -> Iterator[str]:
        if part in self.special:
            yield part
            return
        for piece in regex.split(r"(\p{N})", part):
            for word in regex.findall(GPT2_WORDS, piece):
                yield from self._merged([BYTE_LETTERS[byte] for byte in word.encode()])

    def _merged(self, letters: Sequence[str]) -> list[str]:
        """The letters of a word, of which the pair with the first merge is joined until none is."""
        parts = list(letters)
        while pairs := [p for p in pairwise(parts) if p in self.ranks]:
            left, right = min(pairs, key=self.ranks.__getitem__)
            joined = list[str]()
            while parts:
                is_pair = parts[:2] == [left, right]
                joined.append(left + right if is_pair else parts[0])
                parts = parts[2 if is_pair else 1 :]
            parts = joined
        return parts
