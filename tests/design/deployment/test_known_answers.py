import json
from fractions import Fraction

import numpy as np
import pytest
from deployments import NAMES, WITH_INDEX, deployment_of_name

from quietbits.design.deployment.known_answers import known_answers
from quietbits.design.deployment.public_words import public_words
from quietbits.design.deployment.python_client import GivenWords, client_fields
from quietbits.design.deployment.wire_format import pack_fields


@pytest.mark.parametrize("name", NAMES)
def test_the_python_client_gives_the_known_answers(name: str) -> None:
    deployment = deployment_of_name(name, rounds=3)
    program, kind = deployment.program, deployment.input_kind
    content = known_answers(deployment)
    assert content == known_answers(deployment)
    document = json.loads(content)
    assert document["deployment"] == deployment.hash
    rows = document["vectors"]
    assert len(rows) == 1000
    for row in rows:
        given = [float(number) for number in row["input"]] if kind == "vector" else (float if kind == "number" else int)(row["input"])
        words = GivenWords(np.array([int(word) for word in row["words"]], dtype=np.uint64))
        number, client = int(row.get("round", 0)), int(row.get("client", 0))
        public = public_words(bytes.fromhex(deployment.hash), number, np.array([client], dtype=np.uint64), program.public_words)
        fields = client_fields(program, [given], words, public)
        assert words.used == len(row["words"])
        assert fields[0].tolist() == [int(field) for field in row["fields"]]
        assert pack_fields(fields, program.field_bits).tobytes().hex() == row["message"]
        assert ("client" in row) == (name == WITH_INDEX)
    # Almost all messages occur.
    assert len({row["message"] for row in rows}) >= min(2**program.message_bits // 2, 100) or program.message_bits == 1


def test_decoded_values_of_tables_are_fractions() -> None:
    deployment = deployment_of_name("table")
    table = deployment.table
    assert table is not None
    for row in json.loads(known_answers(deployment))["vectors"]:
        assert Fraction(row["decoded"]) == -1 + 4 * table.alphabet[int(row["fields"][0])]


def test_other_deployments_have_other_words() -> None:
    first, second = (json.loads(known_answers(deployment_of_name("number", rounds))) for rounds in (1, 2))
    assert [row["words"] for row in first["vectors"]][-1] != [row["words"] for row in second["vectors"]][-1]
