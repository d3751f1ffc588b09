"""Encoders: functions that turn a client's vector into its message, in this process or in a program of another language."""

import json
import subprocess
from collections.abc import Callable, Sequence

from ...arguments import check_real
from ...arrays import FloatArray
from ...design.deployment.deployment import Deployment
from ...design.noise.random_words import WordSource, secure_words
from ...errors import DataError
from .encode_data import encode_inputs

Encoder = Callable[[FloatArray, int, int], bytes]
"""Function of a vector, the number of the round and the client's index, which returns the packed message without header and index."""


def python_encoder(deployment: Deployment, random_words: WordSource = secure_words) -> Encoder:
    """Return an encoder that is the deployment's reference client in Python.

    Parameters
    ----------
    deployment : Deployment
        The deployment.
    random_words : WordSource
        Source of randomness; secure words for releases.
    """

    def encode(vector: FloatArray, round_number: int, client_index: int) -> bytes:
        messages, _ = next(encode_inputs(deployment, vector[None], round_number, client_index, random_words))
        return messages.tobytes()

    return encode


def process_encoder(command: Sequence[str], timeout: float = 60.0) -> Encoder:
    r"""Return an encoder that starts a program for each message.

    The program reads one line from its standard input: a JSON array of texts, which are the round, the client's index, and the vector's
    numbers with all digits. It writes the packed message to its standard output, in hexadecimal digits. The program's standard error is
    that of this process. Error messages of the encoder repeat neither the input nor the output, which may be private.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments, such as ``["node", "driver.mjs"]``.
    timeout : float
        Time in seconds after which the program is stopped.

    Raises
    ------
    DataError
        When the encoder is called: if the program cannot start, fails, or writes no message.

    Examples
    --------
    >>> import numpy as np
    >>> encode = process_encoder(["sed", "s/.*/0aff/"])
    >>> encode(np.array([0.25, -1.0]), 0, 7)
    b'\n\xff'
    """
    check_real("timeout", timeout, low=0.0, high=1e9)
    words = list(command)
    if isinstance(command, str) or not words:
        raise ValueError(f"command must be a program and its arguments, such as ['node', 'driver.mjs'], got {command!r}")

    def encode(vector: FloatArray, round_number: int, client_index: int) -> bytes:
        line = json.dumps([str(round_number), str(client_index), *map(repr, vector.tolist())]) + "\n"
        try:
            ended = subprocess.run(words, input=line, stdout=subprocess.PIPE, text=True, timeout=timeout, check=False)  # noqa: S603
        except OSError as error:
            raise DataError(f"command must be a program that starts, got {words[0]!r}: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise DataError(f"command must write a message within {timeout:g} seconds, got none from {words[0]!r}") from None
        except UnicodeDecodeError:
            raise DataError(f"command must write a message in hexadecimal digits, got something else from {words[0]!r}") from None
        if ended.returncode != 0:
            raise DataError(f"command must end with exit code 0, got {ended.returncode} from {words[0]!r}")
        try:
            return bytes.fromhex(ended.stdout)
        except ValueError:
            raise DataError(f"command must write a message in hexadecimal digits, got something else from {words[0]!r}") from None

    return encode
