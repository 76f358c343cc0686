"""The public stream: AES-256 in counter mode, as the standard has it, and nothing of the machine in it."""

from __future__ import annotations

import numpy as np
import pytest

from steps_engine.noise import integers_below, permutation
from steps_engine.public_randomness import PublicRandomness

# NIST SP 800-38A, F.5.5 uses another first counter; these are the first two blocks of the key of zeros from counter 0.
ZEROS = "dc95c078a2408989ad48a21492842087530f8afbc74536b9a963b4f1c4cb738b"


def stream(seed: bytes, sizes: list[int], dtype=np.uint8) -> bytes:
    source = PublicRandomness(seed)
    return b"".join(source.words(n, dtype).astype(np.dtype(dtype).newbyteorder("<")).tobytes() for n in sizes)


def test_the_stream_is_the_standards():
    assert stream(bytes(32), [32]).hex() == ZEROS


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_words_are_the_streams_bytes_in_order_whatever_their_width(dtype):
    n = 64 // np.dtype(dtype).itemsize
    assert stream(b"k" * 32, [1, 3, n - 4], dtype) == stream(b"k" * 32, [64])
    assert PublicRandomness(b"k" * 32).words(2, dtype).dtype == np.dtype(dtype)


def test_another_seed_is_another_stream_and_a_seed_has_32_bytes():
    assert stream(b"a" * 32, [64]) != stream(b"b" * 32, [64])
    with pytest.raises(ValueError, match="32 bytes"):
        PublicRandomness(b"short")


def test_what_is_drawn_from_it_is_even():
    picks = np.bincount(integers_below(10, 100_000, PublicRandomness(b"e" * 32)), minlength=10)
    assert abs(picks - 10_000).max() < 5 * 95 and sorted(permutation(50, PublicRandomness(b"p" * 32))) == list(range(50))
