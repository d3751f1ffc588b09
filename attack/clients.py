"""Clients in C under sanitizers: odd inputs and odd words do no more than a refusal or a valid message."""

import math
import random
import resource
import shutil
import subprocess
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from ..design.contracts.mechanism import Mechanism
from ..design.contracts.norm_ball import NormBall
from ..design.deployment.deployment import Deployment
from ..design.deployment.translation.c_client import c_client
from ..design.deployment.wire_format import unpack_fields
from ..design.frequencies.hadamard_response import hadamard_response, recursive_hadamard_response
from ..design.frequencies.projective_geometry_response import projective_geometry_response
from ..design.frequencies.randomised_response import FrequencyRandomisedResponse
from ..design.frequencies.subset_selection import subset_selection
from ..design.frequencies.unary_encoding import UnaryEncoding
from ..design.local.cldp import CLDPMechanism, vector_cldp_mechanism
from ..design.local.sqkr import SQKRMechanism
from ..design.local.unit_vectors.rotating_simplex import RotatingSimplexMechanism
from ..design.local.vector_table import VectorTableMechanism
from ..design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from ..design.secure_sum.distributed_skellam import DistributedSkellamMechanism
from ..design.tables.randomised_response import generalised_randomised_response
from ..design.tables.table_mean import TableMeanMechanism
from .cases import Arguments, Attack, Refused, refusal
from .parameters import REFUSALS

INPUTS = 20_000
COMPILER = ("gcc", "-std=c99", "-O1", "-g", "-Wall", "-Wextra", "-pedantic", "-Werror")
# Casts of numbers outside the target's range, and divisions by zero, are not among the checks of `undefined`.
SANITIZERS = ("-fsanitize=address,undefined,float-cast-overflow,float-divide-by-zero", "-fno-sanitize-recover=all")
DELTA = 1e-5
NORMS = (1.0, 2.0, math.inf)


def _signs(norm: float, epsilon: float, size: int) -> Mechanism:
    return vector_cldp_mechanism(epsilon, NormBall(size, norm, 0.3))


def _letters(norm: float, epsilon: float, size: int) -> Mechanism:
    return VectorTableMechanism(generalised_randomised_response(epsilon, 1 + size % 5), NormBall(size, norm, 0.3))


# Mechanisms of an epsilon and a size, which is a number of items, bits, or a dimension.
KINDS: Mapping[str, Callable[[float, int], Mechanism]] = {
    "response": lambda epsilon, size: FrequencyRandomisedResponse(epsilon, max(size, 2)),
    "unary": lambda epsilon, size: UnaryEncoding(epsilon, max(size, 2)),
    "hadamard": lambda epsilon, size: hadamard_response(epsilon, max(size, 2)),
    "recursive": lambda epsilon, size: recursive_hadamard_response(epsilon, max(size, 2)),
    "projective": lambda epsilon, size: projective_geometry_response(epsilon, max(size, 2)),
    "subset": lambda epsilon, size: subset_selection(epsilon, max(size, 2)),
    "table": lambda epsilon, size: TableMeanMechanism(generalised_randomised_response(epsilon, 1 + size % 6, interval=(-0.1 * size, 0.3))),
    "sign": lambda epsilon, size: CLDPMechanism(epsilon, (-0.7 * size, 1e-3)),
    **{f"signs {norm}": partial(_signs, norm) for norm in NORMS},
    **{f"letters {norm}": partial(_letters, norm) for norm in NORMS},
    "kashin": lambda epsilon, size: SQKRMechanism(epsilon, 1 + size % 4, NormBall(4 + size % 30, 2.0, 0.3)),
    "simplex": lambda epsilon, size: RotatingSimplexMechanism(
        epsilon, min(1 + size % 4, (size + 2).bit_length() - 1), NormBall(1 + size, 2.0, 0.3)
    ),
    "gaussian sum": lambda epsilon, size: DistributedDiscreteGaussianMechanism(NormBall(size, 2.0, 0.3), 50, 18, 0.02, 1 / epsilon, DELTA),
    "skellam sum": lambda epsilon, size: DistributedSkellamMechanism(NormBall(size, 2.0, 0.3), 50, 18, 0.02, 1 / epsilon, DELTA),
}

DRIVER = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state, drawn, budget, constant;
static int mode;

/* SplitMix64. */
static uint64_t random_word(void)
{
    uint64_t word = state += UINT64_C(0x9e3779b97f4a7c15);
    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

static const uint64_t edges[] = { EDGES };
static const double numbers[] = {
    0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-300, 0.3, -0.3, 1.0, 1e154, -1e154, 1e200, 1e308, DBL_MAX, -DBL_MAX
};

/* Odd words first; random words in the end, so that draws that are repeated come to an end. */
static uint64_t next_word(void *unused)
{
    (void)unused;
    if (drawn++ >= budget) return random_word();
    switch (mode) {
    case 0: return random_word();
    case 1: return constant;
    case 2: return edges[random_word() % (sizeof edges / sizeof *edges)];
    case 3: return random_word() % 8;
    default: return UINT64_MAX - random_word() % 8;
    }
}

static double odd_number(void)
{
    double number;
    uint64_t word = random_word();

    switch (random_word() % 4) {
    case 0:
        memcpy(&number, &word, sizeof number);
        return number;
    case 1: return numbers[word % (sizeof numbers / sizeof *numbers)];
    default: return ((double)(word >> 11) / 4503599627370496.0 - 1.0) * (word % 3 == 0 ? 30.0 : 0.4);
    }
}

int main(int count, char **arguments)
{
    const {P}_source source = { next_word, NULL };
    uint64_t round;

    if (count != 3) return 9;
    state = strtoull(arguments[1], NULL, 10);
    for (round = strtoull(arguments[2], NULL, 10); round > 0; --round) {
        /* Exact sizes on the heap: any access beyond them ends the program. */
        double *vector = malloc(sizeof(double) * {SIZE});
        uint8_t *message = malloc({U}_MESSAGE_BYTES), *other = malloc({U}_MESSAGE_BYTES);
        const int whole = random_word() % 8 == 0;
        const uint64_t item = random_word() % 16 == 0 ? random_word() : random_word() % {CHOICES};
        int place, bad = 0, code;

        for (place = 0; place < {SIZE}; ++place)
            vector[place] = whole && place ? vector[0] : odd_number();
        if (random_word() % 8 == 0) {
            /* An infinity, or NaN. */
            const uint64_t word = (random_word() & UINT64_C(0x8000000000000000)) | UINT64_C(0x7ff0000000000000);
            const uint64_t bits = word | (random_word() % 2 ? random_word() >> 12 : 0);
            memcpy(&vector[random_word() % {SIZE}], &bits, sizeof bits);
        }
        for (place = 0; place < {SIZE}; ++place) {
            /* The bits of NaN and of infinities have an exponent of ones only. */
            uint64_t bits;
            memcpy(&bits, &vector[place], sizeof bits);
            bad |= (bits >> 52 & 0x7ff) == 0x7ff;
        }
{CHECK}        mode = (int)(random_word() % 5);
        budget = random_word() % 4096;
        constant = random_word() % 2 ? random_word() : edges[random_word() % (sizeof edges / sizeof *edges)];
        drawn = 0;
        const uint64_t start = state;
        code = {P}_encode_with({INPUT}, {PLACE}source, message);
        if (code != (bad ? {U}_BAD_INPUT : {U}_OK)) return 10;
        if (bad && drawn) return 11;
        if (!bad) fwrite(message, 1, {U}_MESSAGE_BYTES, stdout);
        {AGAIN}
        if (round % 64 == 0 && {P}_encode({INPUT}, {PLACE}other) != (bad ? {U}_BAD_INPUT : {U}_OK)) return 13;
        (void)item; (void)start; (void)other;
        free(vector);
        free(message);
        free(other);
    }
    return 0;
}
"""
AGAIN = """drawn = 0;
        state = start;
        if ({P}_encode_in_constant_time_with({INPUT}, source, other) != code) return 12;
        if (!bad && memcmp(message, other, {U}_MESSAGE_BYTES)) return 12;"""


def draw(rng: random.Random) -> Arguments:
    """Draw a mechanism, and the seed of inputs and words."""
    size = rng.choice((1, 2, 3, rng.randrange(2, 70), int(10 ** rng.uniform(0.3, 2.5))))
    return {
        "kind": rng.choice(list(KINDS)),
        "epsilon": rng.choice((0.1, 1.0, 4.0, 10 ** rng.uniform(-2, 1))),
        "size": size,
        "seed": rng.randrange(2**64),
    }


def check(folder: Path, kind: str, epsilon: float, size: int, seed: int, inputs: int = INPUTS) -> None:
    """Compile the client with sanitizers, run it, and check its messages."""
    if shutil.which("gcc") is None:
        raise Refused("gcc is missing")
    try:
        deployment = Deployment(KINDS[kind](epsilon, size), "attacked", delta=DELTA if kind.endswith("sum") else 0.0, name="attacked")
        program = deployment.program
    except REFUSALS as error:
        raise refusal(error) from error
    for path, text in c_client(deployment.description()).items():
        (folder / path).write_text(text, encoding="ascii")
    (folder / "main.c").write_text(driver(deployment), encoding="ascii")
    compiled = subprocess.run(  # noqa: S603 - gcc, with the client that was just made
        [*COMPILER, *SANITIZERS, "main.c", "-o", "attacked", "-lm"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert compiled.returncode == 0, compiled.stderr
    ended = subprocess.run(  # noqa: S603 - the program that was just made
        [str(folder / "attacked"), str(seed), str(inputs)], cwd=folder, capture_output=True, check=False
    )
    assert ended.returncode == 0, f"exit code {ended.returncode}: {ended.stderr.decode(errors='replace')}"
    messages = np.frombuffer(ended.stdout, dtype=np.uint8).reshape(-1, program.message_bytes)
    fields, filled = unpack_fields(messages, program.field_bits, program.fields)
    assert len(fields) > 0
    assert filled.all()
    assert program.valid(fields).all()


def driver(deployment: Deployment) -> str:
    """Return a C program that gives the client odd inputs and words, and writes its messages."""
    description, program = deployment.description(), deployment.program
    edges = {0, 2**64 - 1}
    for value in program.constants.values():
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, int) and number > 0:
                edges |= {number - 1, number, 2**64 - 2**64 % number - 1, (2**64 - 2**64 % number) % 2**64}
    text = f'#include "{deployment.identifier}.h"\n' + DRIVER.replace("{AGAIN}", AGAIN if program.constant_time is not None else "")
    for name, part in {
        "EDGES": ", ".join(f"UINT64_C({edge})" for edge in sorted(edges)),
        "{P}": deployment.identifier,
        "{U}": deployment.identifier.upper(),
        "{SIZE}": str(description.dimension or 1),
        "{CHOICES}": str((description.categories or 0) + 1),
        "{CHECK}": f"        bad = item >= {description.categories}u;\n" if description.categories else "",
        "{INPUT}": {"item": "item", "number": "vector[0]", "vector": "vector"}[description.input],
        "{PLACE}": "(uint32_t)random_word(), random_word(), " if program.public_words else "",
    }.items():
        text = text.replace(name, part)
    return text


# The sanitizer reserves terabytes of addresses, of which it uses little.
ATTACK = Attack("clients", draw, check, seconds=60.0, most_memory=resource.RLIM_INFINITY)
