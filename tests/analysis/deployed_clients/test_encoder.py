"""Encoders as programs: their line of input, and their faults, which never show the input."""

import json
import sys

import numpy as np
import pytest

from quietbits.analysis.deployed_clients.encoder import process_encoder
from quietbits.errors import DataError

VECTOR = np.array([0.1, -0.0, 1e-300, 2.0**53 + 2])
# The program answers with its line, as hexadecimal digits.
ECHO = [sys.executable, "-c", "import sys; print(sys.stdin.readline().encode().hex())"]


def test_a_program_gets_a_line_of_texts_that_keep_all_digits() -> None:
    line = process_encoder(ECHO)(VECTOR, 2**32 - 1, 2**64 - 1).decode()
    assert line.endswith("]\n")
    round_number, client, *numbers = json.loads(line)
    assert (int(round_number), int(client)) == (2**32 - 1, 2**64 - 1)
    np.testing.assert_array_equal(np.array(numbers, dtype=float).view(np.uint64), VECTOR.view(np.uint64))


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("sys.exit(4)", "command must end with exit code 0, got 4"),
        ("print('0.1')", "command must write a message in hexadecimal digits, got something else"),
        ("sys.stdout.buffer.write(bytes([255]))", "command must write a message in hexadecimal digits, got something else"),
        ("time.sleep(60)", "command must write a message within 0.5 seconds, got none"),
    ],
)
def test_a_program_that_fails_shows_neither_input_nor_output(script: str, said: str) -> None:
    encode = process_encoder([sys.executable, "-c", f"import sys, time; {script}"], timeout=30.0 if "sleep" not in script else 0.5)
    with pytest.raises(DataError) as raised:
        encode(VECTOR, 0, 0)
    assert str(raised.value) == f"{said} from {sys.executable!r}"


def test_a_program_that_reads_nothing_may_answer() -> None:
    large = np.zeros(10**6)
    assert process_encoder([sys.executable, "-c", "print('00')"])(large, 0, 0) == b"\x00"


def test_a_command_must_be_a_program_that_starts() -> None:
    with pytest.raises(DataError, match="command must be a program that starts, got '/no/such/program'"):
        process_encoder(["/no/such/program"])(VECTOR, 0, 0)
    for command in ("node driver.mjs", []):
        with pytest.raises(ValueError, match="command must be a program and its arguments"):
            process_encoder(command)
