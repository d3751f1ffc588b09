"""Clients in C: they agree with Python's on all known answers, under the strictest warnings, ten in one program."""

import json
import math
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from deployments import NAMES, deployment_of_name, law_of_messages
from scipy import stats

from quietbits.design.deployment.deployment import Deployment
from quietbits.design.deployment.folder import deployment_files
from quietbits.design.tables.randomised_response import bitwise_randomised_response, generalised_randomised_response
from quietbits.design.tables.table_mean import TableMeanMechanism

COMPILER = shutil.which("cc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler is installed")
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
SANITIZED = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

# The program reads for each vector the number of words, the words, the round, the client and the input, and writes the message.
CASE = """
static int {name}(void)
{{
    uint64_t words[4096], count, round, client;
    unsigned char message[{macro}_MESSAGE_BYTES];
    {input_type};
    struct queue queue = {{ words, 0 }};
    {name}_source source = {{ queue_next, &queue }};

    if (fread(&count, 8, 1, stdin) != 1 || count > 4096 || fread(words, 8, count, stdin) != count)
        return 1;
    if (fread(&round, 8, 1, stdin) != 1 || fread(&client, 8, 1, stdin) != 1 || fread({address}, {size}, 1, stdin) != 1)
        return 2;
    (void)round;
    (void)client;
    if ({name}_encode_with({argument}, {public}source, message) != {macro}_OK || queue.used != count)
        return 3;
    if (fwrite(message, 1, sizeof message, stdout) != sizeof message)
        return 4;
    {constant_time}
    return 0;
}}
"""
CONSTANT_TIME = """{{
        unsigned char again[{macro}_MESSAGE_BYTES];
        queue.used = 0;
        if ({name}_encode_in_constant_time_with({argument}, source, again) != {macro}_OK || memcmp(again, message, sizeof again) != 0)
            return 5;
    }}"""
HEAD = """
#include <stdint.h>
#include <stdio.h>
#include <string.h>
{includes}
struct queue {{ const uint64_t *words; uint64_t used; }};
static uint64_t queue_next(void *state)
{{
    struct queue *queue = (struct queue *)state;
    return queue->words[queue->used++];
}}
{cases}
int main(void)
{{
    uint64_t kind;
    while (fread(&kind, 8, 1, stdin) == 1) {{
        int failed = 9;
        switch (kind) {{
{calls}
        }}
        if (failed)
            return failed;
    }}
    return 0;
}}
"""


def case_of(deployment: Deployment) -> str:
    """Return a C function that runs a vector through a client."""
    name, kind = deployment.identifier, deployment.input_kind
    dimension = deployment.description().dimension
    shape = {
        "number": ("double input", "&input", "input", 8),
        "item": ("uint64_t input", "&input", "input", 8),
        "vector": (f"double input[{dimension}]", "input", "input", 8 * (dimension or 0)),
    }[kind]
    fill = {"name": name, "macro": name.upper(), "input_type": shape[0], "address": shape[1], "argument": shape[2], "size": shape[3]}
    fill["public"] = "(uint32_t)round, client, " if deployment.carries_index else ""
    constant_time = CONSTANT_TIME.format(**fill) if deployment.program.constant_time is not None else ""
    return CASE.format(**fill, constant_time=constant_time)


def compiled(deployments: Sequence[Deployment], folder: Path, flags: Sequence[str]) -> Path:
    """Compile the clients of deployments into a program."""
    for deployment in deployments:
        for path, content in deployment_files(deployment, ["c"]).items():
            if path.startswith("c/"):
                (folder / Path(path).name).write_bytes(content)
    names = [deployment.identifier for deployment in deployments]
    source = HEAD.format(
        includes="\n".join(f'#include "{name}.h"' for name in names),
        cases="".join(map(case_of, deployments)),
        calls="\n".join(f"        case {number}: failed = {name}(); break;" for number, name in enumerate(names)),
    )
    (folder / "program.c").write_text(source)
    command = [str(COMPILER), *STRICT, *flags, "program.c", "-o", "program", "-lm"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[:3000]
    return folder / "program"


def compare_vectors(deployments: Sequence[Deployment], program: Path) -> None:
    """Run all vectors of all deployments, in turns, and compare the messages."""
    given, expected = [], []
    vectors = [json.loads(deployment_files(deployment, ["c"])["vectors.json"])["vectors"] for deployment in deployments]
    for rows in zip(*vectors, strict=True):
        for number, row in enumerate(rows):
            words = [int(word) for word in row["words"]]
            head = [number, len(words), *words, int(row.get("round", 0)), int(row.get("client", 0))]
            value = row["input"]
            if deployments[number].input_kind == "item":
                content = np.array([int(value)], dtype=np.uint64).tobytes()
            else:
                content = np.array(value if isinstance(value, list) else [value], dtype=float).tobytes()
            given.append(np.array(head, dtype=np.uint64).tobytes() + content)
            expected.append(bytes.fromhex(row["message"]))
    result = subprocess.run([program], input=b"".join(given), capture_output=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stdout == b"".join(expected)


def tables() -> list[Deployment]:
    """Return deployments of tables of several sizes and intervals."""
    drawn = {
        "one-bit": generalised_randomised_response(1.0, 1, interval=(-1.0, 1.0)),
        "odd-interval": generalised_randomised_response(0.5, 3, interval=(-0.1, 123.456)),
        "bitwise": bitwise_randomised_response(5.0, 5, interval=(1e-3, 1e-2)),
    }
    return [Deployment(TableMeanMechanism(table), table.mechanism, name=name) for name, table in drawn.items()]


@pytest.mark.parametrize("flags", [["-O0"], ["-O3", "-ffp-contract=fast"], SANITIZED], ids=lambda flags: flags[0])
def test_clients_of_one_program_give_the_known_answers(flags: list[str], tmp_path: Path) -> None:
    deployments = [*(deployment_of_name(name, rounds=3) for name in NAMES), *tables()]
    assert len(deployments) > 10
    compare_vectors(deployments, compiled(deployments, tmp_path, flags))


DRAWS = """
#include <stdio.h>
#include "{name}.h"
int main(void)
{{
    unsigned long place;
    unsigned char message[{macro}_MESSAGE_BYTES];
    for (place = 0; place < {count}ul; ++place)
        if ({name}_{function}({value}, message) != {macro}_OK || fwrite(message, 1, sizeof message, stdout) != sizeof message)
            return 1;
    return {name}_{function}({bad}, message) == {macro}_BAD_INPUT ? 0 : 2;
}}
"""


@pytest.mark.parametrize(
    ("name", "function", "bad"),
    [
        ("table", "encode", "0.0 / 0.0"),
        ("table", "encode_in_constant_time", "1e400"),
        ("hadamard", "encode", "6"),
        ("subsets", "encode", "6"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_secure_draws_have_the_exact_law(name: str, function: str, bad: str, tmp_path: Path) -> None:
    deployment, count = deployment_of_name(name), 10**6
    (tmp_path / f"{deployment.identifier}.h").write_bytes(deployment_files(deployment, ["c"])[f"c/{deployment.identifier}.h"])
    value = "-1.0" if name == "table" else "2"
    fill = {"name": deployment.identifier, "macro": deployment.identifier.upper(), "function": function}
    (tmp_path / "draws.c").write_text(DRAWS.format(**fill, count=count, value=value, bad=bad))
    subprocess.run([str(COMPILER), "-std=c99", "-O2", "-w", "draws.c", "-o", "draws", "-lm"], cwd=tmp_path, check=True)
    output = subprocess.run([tmp_path / "draws"], capture_output=True, check=True).stdout
    counts = np.bincount(np.frombuffer(output, dtype=np.uint8), minlength=256)
    assert counts.sum() == count
    if name == "table":
        table = deployment.table
        assert table is not None
        law = {letter << 5: float(share) for letter, share in enumerate(table.probabilities[0])}
    else:
        law = {message[0]: float(share) for message, share in law_of_messages(deployment, 2, []).items()}
    kinds = sorted(law)
    assert counts[kinds].sum() == count
    # The draws are the system's: a right client fails once in a hundred million runs.
    assert stats.chisquare(counts[kinds], count * np.array([law[kind] for kind in kinds]) / math.fsum(law.values())).pvalue > 1e-8
