"""Names imported from Flower, and quietbits' records in Flower's messages.

Only federations import this module.
"""

import json
from typing import Any

from numpy.typing import NDArray

from ...extras import optional
from .model_update import Arrays
from .packed_message import PackedMessage

with optional("flwr", "federations"):
    from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message, MetricRecord, RecordDict
    from flwr.clientapp.typing import ClientAppCallable
    from flwr.serverapp import Grid
    from flwr.serverapp.strategy import Strategy

__all__ = [
    "ArrayRecord",
    "ClientAppCallable",
    "ConfigRecord",
    "Context",
    "Error",
    "Grid",
    "Message",
    "MetricRecord",
    "RecordDict",
    "Strategy",
]

# Names of this package's records in a message's content.
CONFIG, MESSAGE = "quietbits", "quietbits.message"
# MOD_FAILED equals Flower's `ErrorCode.MOD_FAILED_PRECONDITION`.
MOD_FAILED = 6


def numpy_arrays(record: ArrayRecord) -> Arrays:
    """Return a record's arrays by name."""
    return {name: array.numpy() for name, array in record.items()}


def array_record(arrays: Arrays) -> ArrayRecord:
    """Return the Flower record of arrays."""
    return ArrayRecord({name: Array(array) for name, array in arrays.items()})


def only_arrays(content: RecordDict, what: str) -> ArrayRecord:
    """Return the only array record of a message, or raise ValueError."""
    records = list(content.array_records.values())
    if len(records) != 1:
        raise ValueError(f"{what} must have one ArrayRecord, got {len(records)}")
    return records[0]


def packed_records(message: PackedMessage) -> RecordDict:
    """Return the Flower records of a client's message."""
    form = json.dumps({"width": message.width, "kind": message.kind, "shape": message.shape})
    return RecordDict({MESSAGE: array_record({"message": message.content}), CONFIG: ConfigRecord({"form": form})})


def unpacked_message(content: RecordDict) -> NDArray[Any]:
    """Return the message that `packed_records` turned into records."""
    form = json.loads(str(content.config_records[CONFIG]["form"]))
    sent = numpy_arrays(content.array_records[MESSAGE])["message"]
    return PackedMessage(sent, form["width"], form["kind"], tuple(form["shape"])).message


def bytes_of(content: RecordDict) -> int:
    """Return the number of bytes of a message's arrays and values, without Flower's overhead."""
    arrays = sum(len(array.data) for record in content.array_records.values() for array in record.values())
    values = (value for record in content.config_records.values() for value in record.values())
    return arrays + sum(len(value) for value in values if isinstance(value, bytes | str))
