"""Secure sums of deployed clients: the reference for masking libraries, and the decoder of the modular sum."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import MOST_CLIENTS, check_integer
from ...arrays import WordArray
from ...errors import DataError, InfeasibleError
from ..contracts.mechanism import SecureSumMechanism
from .decoder import DecodedEstimate, estimate_of
from .deployment import Deployment
from .wire_format import Bytes, unpack_fields


def sum_of_messages(deployment: Deployment, chunks: Iterable[Bytes]) -> WordArray:
    """Return the sum of messages modulo the mechanism's modulus, as a masking library computes it without seeing a message.

    Parameters
    ----------
    deployment : Deployment
        A deployment of a secure sum.
    chunks : iterable of ndarray of uint8, shape (clients, message_bytes)
        Packed messages.
    """
    mechanism = _secure_sum(deployment)
    total = np.zeros(mechanism.padded_dimension, dtype=np.uint64)
    for messages in chunks:
        fields, _ = unpack_fields(messages, deployment.program.field_bits, deployment.program.fields)
        total = (total + fields.astype(np.uint64).sum(axis=0)) % np.uint64(mechanism.modulus)
    return total


def decode_sum(deployment: Deployment, residues: ArrayLike, clients: int, round_number: int = 0) -> DecodedEstimate:
    """Return the estimate from the modular sum of clients' messages.

    The guarantee is that of the clients whose messages were added up: fewer clients than planned add less noise.

    Parameters
    ----------
    deployment : Deployment
        A deployment of a secure sum.
    residues : array_like of whole numbers, shape (fields,)
        The sum of each field modulo the mechanism's modulus.
    clients : int
        Number of clients in the sum.
    round_number : int
        Number of the round, from 0.

    Raises
    ------
    DataError
        If the residues have another shape, or are not below the modulus.
    """
    planned = _secure_sum(deployment)
    deployment.check_round(round_number)
    array = np.asarray(residues)
    if array.shape != (planned.padded_dimension,) or array.dtype.kind not in "iu":
        raise DataError(f"residues must be {planned.padded_dimension} whole numbers, got {array.dtype} of shape {array.shape}")
    if array.min() < 0 or int(array.max()) >= planned.modulus:
        raise DataError(f"residues must be from 0 to {planned.modulus - 1}, got {array.min()} to {array.max()}")
    own = deployment.with_clients(check_integer("clients", clients, low=1, high=MOST_CLIENTS))
    return estimate_of(own, own.mechanism, array.astype(np.uint64), clients, {}, round_number)


def _secure_sum(deployment: Deployment) -> SecureSumMechanism:
    if not isinstance(deployment.mechanism, SecureSumMechanism):
        raise InfeasibleError(f"deployment must be of a secure sum, got {deployment.mechanism_name}, whose server sees messages")
    return deployment.mechanism
