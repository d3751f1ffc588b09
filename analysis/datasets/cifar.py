"""CIFAR-10 from its published pickled batches (Krizhevsky 2009); pickles are not run.

A pickle is a program: it may name any function, and Python's own reader calls it. The reader accepts only numbers, text, lists,
dictionaries and arrays of bytes. It reads the instructions with `pickletools`, which executes none of them, and carries out the
instructions that build data. It imitates the three functions with which numpy writes arrays, and refuses any other name.
"""

import math
import pickletools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import IntegerArray
from ...errors import DataError
from ...files import shown_path
from .federated_data import Examples, FederatedData, divided_data, first_images
from .splits import chosen_split
from .stored_files import found_file, read_whole

# Different versions of numpy use these two names of the module.
RECONSTRUCT = {f"numpy.{core}.multiarray _reconstruct" for core in ("core", "_core")}
ARRAY, DTYPE = "numpy ndarray", "numpy dtype"
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
NUMBERS = {"BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1"}
# Python 2 writes strings with these instructions, and `pickletools` returns them as latin-1.
OLD_STRINGS = {"STRING", "BINSTRING", "SHORT_BINSTRING"}
NEW_STRINGS = {"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"}
TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
SIDE, CHANNELS, CLASSES, WHITE = 32, 3, 10, 255
TRAINING_BATCHES, TEST_BATCH = tuple(f"data_batch_{number}" for number in range(1, 6)), "test_batch"
SOURCE = "https://www.cs.toronto.edu/~kriz/cifar.html, CIFAR-10 python version, unpacked,"
# Largest size of a batch; a published batch has 3.1e7 bytes.
MOST_FILE_BYTES = 2**28


@dataclass(eq=False)
class _Array:
    """An array, empty or filled."""

    values: NDArray[np.uint8] | None = None


@dataclass(frozen=True)
class _Name:
    """The name of a function or a class, which is never looked up."""

    name: str


@dataclass(frozen=True)
class _Dtype:
    """numpy's dtype of a name, such as ``u1``."""

    name: str


class _Mark:
    """The mark before the items of a list or a dictionary."""


def read_pickled_dictionary(content: bytes, where: str) -> dict[Any, Any]:
    """Return the dictionary that a pickle holds, or raise `DataError`.

    Keys and text of Python 2 are bytes, and arrays are ndarrays of uint8. The error begins with `where`, and names the damage or the
    forbidden instruction.
    """
    machine = _Machine()
    try:
        for instruction, argument, _ in pickletools.genops(content):
            machine.step(instruction.name, argument)
        (dictionary,) = machine.stack
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    except (ValueError, IndexError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise DataError(f"{where}: is a damaged pickle, {type(error).__name__}: {error}") from error
    if not isinstance(dictionary, dict):
        raise DataError(f"{where}: must hold a dictionary, it holds {type(dictionary).__name__}")
    return {key: value.values if isinstance(value, _Array) else value for key, value in dictionary.items()}


@dataclass
class _Machine:
    """The stack and the memory of a pickle's program."""

    stack: list[Any] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)

    def step(self, name: str, argument: Any) -> None:
        """Carry out an instruction."""
        if name in CONSTANTS:
            self.stack.append(CONSTANTS[name])
        elif name in NUMBERS or name in NEW_STRINGS:
            self.stack.append(argument)
        elif name in OLD_STRINGS:
            self.stack.append(argument.encode("latin-1"))
        elif name in TUPLES:
            count = TUPLES[name]
            items = [self.stack.pop() for _ in range(count)]
            self.stack.append(tuple(items[::-1]))
        elif name in STEPS:
            STEPS[name](self, argument)
        else:
            raise DataError(f"the pickle has the instruction {name}, which data do not need: it is not carried out")

    def items(self) -> list[Any]:
        """Pop the items above the last mark."""
        place = max(place for place, item in enumerate(self.stack) if isinstance(item, _Mark)) if self.stack else 0
        popped = self.stack[place + 1 :]
        del self.stack[place:]
        return popped

    def extend(self, items: list[Any]) -> None:
        """Add items to the list on top of the stack."""
        _kind(self.stack[-1], list).extend(items)

    def update(self, items: list[Any]) -> None:
        """Add alternating keys and values to the dictionary on top of the stack."""
        built, added = _kind(self.stack[-1], dict), dict(zip(items[::2], items[1::2], strict=True))
        if 2 * len(added) < len(items) or added.keys() & built.keys():
            raise DataError("the pickle has a key of a dictionary twice")
        built.update(added)

    def gather(self, _: Any) -> None:
        """Push a dictionary of the items above the last mark."""
        items = self.items()
        self.stack.append({})
        self.update(items)

    def refer(self, name: str) -> None:
        """Push a name if it is accepted."""
        if name not in (*RECONSTRUCT, ARRAY, DTYPE):
            raise DataError(f"the pickle names {name.replace(' ', '.')}, which data do not need: it is not called")
        self.stack.append(_Name(name))

    def refer_on_stack(self, _: Any) -> None:
        """Push a name whose parts are on the stack."""
        name, module = self.stack.pop(), self.stack.pop()
        self.refer(f"{module} {name}")

    def reduce(self, _: Any) -> None:
        """Push an empty array or a dtype."""
        arguments, called = _kind(self.stack.pop(), tuple), _kind(self.stack.pop(), _Name).name
        if called in RECONSTRUCT and arguments[:1] == (_Name(ARRAY),):
            self.stack.append(_Array())
        elif called == DTYPE:
            name = arguments[0]
            self.stack.append(_Dtype(name.decode() if isinstance(name, bytes) else name))
        else:
            raise DataError(f"the pickle calls {called.replace(' ', '.')}, which data do not need")

    def build(self, _: Any) -> None:
        """Fill an array; the state of a dtype of bytes changes nothing."""
        state, built = _kind(self.stack.pop(), tuple), self.stack[-1]
        if isinstance(built, _Dtype):
            return
        _, shape, dtype, by_columns, content = state
        if dtype != _Dtype("u1"):
            raise DataError(f"the pickle's arrays must be of unsigned bytes, u1, one is of {dtype}")
        if not all(isinstance(side, int) for side in _kind(shape, tuple)) or math.prod(shape) != len(content) or min(shape, default=0) < 0:
            raise DataError(f"the pickle has an array of shape {str(shape)[:80]} with {len(content)} bytes")
        values = np.frombuffer(_kind(content, bytes), dtype=np.uint8)
        _kind(built, _Array).values = values.reshape(shape, order="F" if by_columns else "C")

    def remember(self, argument: Any) -> None:
        """Store the top of the stack under a number, or under the next free number."""
        self.memo[len(self.memo) if argument is None else argument] = self.stack[-1]


def _kind(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}, found {type(value).__name__}")
    return value


def _nothing(_: _Machine, __: Any) -> None:
    """Ignore an instruction for the protocol, a length or the end."""


STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), _nothing),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), _Machine.remember),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda machine, argument: machine.stack.append(machine.memo[argument])),
    "MARK": lambda machine, _: machine.stack.append(_Mark()),
    "EMPTY_LIST": lambda machine, _: machine.stack.append([]),
    "EMPTY_DICT": lambda machine, _: machine.stack.append({}),
    "DICT": _Machine.gather,
    "LIST": lambda machine, _: machine.stack.append(machine.items()),
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.items())),
    "APPEND": lambda machine, _: machine.extend([machine.stack.pop()]),
    "APPENDS": lambda machine, _: machine.extend(machine.items()),
    "SETITEM": lambda machine, _: machine.update([machine.stack.pop(), machine.stack.pop()][::-1]),
    "SETITEMS": lambda machine, _: machine.update(machine.items()),
    "GLOBAL": _Machine.refer,
    "STACK_GLOBAL": _Machine.refer_on_stack,
    "REDUCE": _Machine.reduce,
    "BUILD": _Machine.build,
}


def cifar10_data(
    folder: Path, clients: int, seed: int, *, images: int | None = None, split: str = "iid", alpha: float = 1.0
) -> FederatedData:
    """Divide CIFAR-10 among clients; the folder has the six batches under their published names.

    The split works as in `digits_data`. Pixels are from 0 to 1; an image's numbers are ordered by row, column and colour. Only the first
    `images` of the training images count.
    """
    *training, test = _read_batches(folder, (*TRAINING_BATCHES, TEST_BATCH))
    whole, classes = (np.concatenate(part) for part in zip(*training, strict=True))
    pixels, labels = first_images(whole, classes, images)
    dealt = chosen_split(labels, clients, split, alpha, seed)
    held = Examples(test[0] / WHITE, test[1])
    return divided_data(pixels, labels, held, dealt, CLASSES, (SIDE, SIDE, CHANNELS), unit=WHITE)


def cifar10_images(folder: Path) -> int:
    """Return the number of CIFAR-10's training images in a folder."""
    return sum(len(labels) for _, labels in _read_batches(folder, TRAINING_BATCHES))


def _read_batches(folder: Path, names: Sequence[str]) -> list[tuple[NDArray[np.uint8], IntegerArray]]:
    return [_read_batch(path) for path in [found_file(folder, (name,), SOURCE) for name in names]]


def _read_batch(path: Path) -> tuple[NDArray[np.uint8], IntegerArray]:
    batch = read_pickled_dictionary(read_whole(path, MOST_FILE_BYTES), shown_path(path))
    images, labels = (_value(path, batch, key) for key in ("data", "labels"))
    if not isinstance(images, np.ndarray) or images.ndim != 2 or images.shape[1] != CHANNELS * SIDE**2 or not len(images):
        shape = images.shape if isinstance(images, np.ndarray) else type(images).__name__
        raise DataError(f"{shown_path(path)}: data must be an array of images of {CHANNELS * SIDE**2} bytes, it is {shape}")
    if (
        not isinstance(labels, list)
        or len(labels) != len(images)
        or not all(type(label) is int and 0 <= label < CLASSES for label in labels)
    ):
        raise DataError(f"{shown_path(path)}: labels must be {len(images)} whole numbers from 0 to {CLASSES - 1}, they are not")
    names = batch.get(b"filenames", batch.get("filenames", labels))
    if not isinstance(names, list) or len(names) != len(images):
        raise DataError(f"{shown_path(path)}: filenames must be as many as the images, {len(images)}, they are not")
    upright = images.reshape(-1, CHANNELS, SIDE, SIDE).transpose(0, 2, 3, 1).reshape(len(images), -1)
    return upright, np.array(labels, dtype=np.int64)


def _value(path: Path, batch: dict[Any, Any], key: str) -> Any:
    """Return the value of a key, which Python 2 and Python 3 write differently."""
    for name in (key.encode(), key):
        if name in batch:
            return batch[name]
    raise DataError(f"{shown_path(path)}: there is no {key!r} among {sorted(map(str, batch))}")
