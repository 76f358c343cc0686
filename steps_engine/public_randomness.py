"""Random bits for what comes after the noise: a stream that anybody can have again from its seed, on any machine.

Nothing that is protected may be drawn from it. Noise and elections are the operating system's (noise.py): a seed that follows
from what is published would take them away again.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes


class PublicRandomness:
    """AES-256 in counter mode from 0 (NIST SP 800-38A), the seed being its key: bytes in order, words little-endian.

    >>> PublicRandomness(bytes(32)).words(2, np.uint64).tolist()
    [9910523521560253916, 9736928157321283757]
    """

    def __init__(self, seed: bytes) -> None:
        if len(seed) != 32:
            raise ValueError(f"a seed has 32 bytes; found {len(seed)}")
        self._stream = Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor()

    def words(self, n: int, dtype: type[np.unsignedinteger]) -> np.ndarray:
        little = np.dtype(dtype).newbyteorder("<")
        return np.frombuffer(self._stream.update(bytes(n * little.itemsize)), little).astype(dtype)
