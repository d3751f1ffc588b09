"""Keys that two clients agree on through a server that cannot learn them; masks and sealed letters."""

import hashlib
import secrets
from dataclasses import dataclass

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ...arrays import WordArray
from ..noise.random_words import WordSource

KEY_BYTES, COUNTER_BYTES, NONCE_BYTES = 32, 16, 12
WORD_BYTES = 8


def new_key() -> bytes:
    """Return 32 random bytes of the operating system, as a private key or as the seed of a mask."""
    return secrets.token_bytes(KEY_BYTES)


def public_key(private: bytes) -> bytes:
    """Return the public half of a private key (X25519)."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def agreed_key(private: bytes, public: bytes, purpose: bytes) -> bytes:
    """Return the key shared by two clients for a purpose (X25519, HKDF, SHA-256)."""
    shared = X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))
    return HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=purpose).derive(shared)


def commitment(secret: bytes, purpose: bytes) -> bytes:
    """Return a commitment: the SHA-256 digest of a secret and its purpose.

    The digest fixes the secret and does not reveal it.

    The secret needs at least 256 bits of entropy: anyone who sees the digest can test guesses of the secret.
    """
    return hashlib.sha256(len(purpose).to_bytes(8, "little") + purpose + secret).digest()


def seal(key: bytes, content: bytes, purpose: bytes) -> bytes:
    """Encrypt and authenticate content with AES-256-GCM; the purpose is authenticated, too."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, content, purpose)


def unseal(key: bytes, sealed: bytes, purpose: bytes) -> bytes:
    """Return the sealed content, or raise ``ValueError`` if it was changed."""
    try:
        return AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], purpose)
    except InvalidTag:
        raise ValueError("sealed letter must be as its sender made it: this one was changed, or is for someone else") from None


@dataclass(eq=False)
class KeyedWords(WordSource):
    """The keystream of AES-256 in counter mode: everyone with the key draws the same words."""

    key: bytes

    def __post_init__(self) -> None:
        """Begin the stream; its counter may start at zero because a key serves only once."""
        self._encryptor = Cipher(algorithms.AES(self.key), modes.CTR(bytes(COUNTER_BYTES))).encryptor()

    def __call__(self, count: int) -> WordArray:
        """Return the next words."""
        return np.frombuffer(bytearray(self._encryptor.update(bytes(WORD_BYTES * count))), dtype="<u8").astype(np.uint64, copy=False)


def keyed_mask(key: bytes, length: int, modulus: int) -> WordArray:
    """Return the mask of a key, which is uniform to anyone without the key."""
    return KeyedWords(key).integers(modulus, length).astype(np.uint64)
