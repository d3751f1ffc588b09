"""Clients in C: messages equal the Python client's, follow the stated law, and keep out inputs outside the domain.

All deployments are compiled into one program.
"""

import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from deployed_clients import DRAWN, DRAWS, LARGEST, bad_inputs, cases, check_frequencies, deployments, extreme_cases, large_cases, line_of

from quietbits.design.deployment.client_program import ClientProgram
from quietbits.design.deployment.clients.kinds import Fields, Number, Source, Word
from quietbits.design.deployment.deployment import Deployment
from quietbits.design.deployment.public_words import public_words
from quietbits.design.deployment.translation.c_client import c_client
from quietbits.design.deployment.translation.client_description import ClientDescription

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="clients in C are compiled with gcc, which is missing")

STRICT = ("-std=c99", "-O2", "-Wall", "-Wextra", "-pedantic", "-Werror")
# Products would be fused with sums here, if they were not rounded before.
FUSED = ("-std=c99", "-O3", "-march=native", "-ffp-contract=fast", "-Wall", "-Wextra", "-pedantic", "-Werror")
# Words of more than two blocks.
PUBLIC_WORDS = 20
NAMES = list(deployments())

MAIN = """
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 4096
typedef struct { uint64_t words[MOST]; uint64_t count, used; } stream;

static uint64_t stream_next(void *pointer)
{
    stream *given = (stream *)pointer;
    if (given->used == given->count) { fprintf(stderr, "no words are left\\n"); exit(3); }
    return given->words[given->used++];
}

static uint64_t number(void)
{
    uint64_t value;
    if (scanf("%" SCNx64, &value) != 1) exit(4);
    return value;
}

static void print(int code, const uint8_t *message, size_t bytes, const stream *given)
{
    printf("%d ", code);
    for (size_t place = 0; code == 0 && place < bytes; ++place) printf("%02x", message[place]);
    printf(" %" PRIu64 "\\n", given->used);
}
"""
RUN = """
static void run_{P}(int draws, uint32_t round, uint64_t client, const uint64_t *bits, stream *given)
{{
    double numbers[{count}];
    uint8_t message[{U}_MESSAGE_BYTES];
    {P}_source words = {{ stream_next, given }};
    memcpy(numbers, bits, sizeof numbers);
    for (int draw = 0; draw < draws; ++draw) {{
        if ({P}_encode({value}, {place}message) != {U}_OK) exit(5);
        fwrite(message, 1, sizeof message, stdout);
    }}
    if (draws) return;
    print({P}_encode_with({value}, {place}words, message), message, sizeof message, given);
    {constant_time}
    (void)round; (void)client; (void)numbers;
}}
"""
CONSTANT_TIME = (
    "given->used = 0; print({P}_encode_in_constant_time_with({value}, words, message), message, sizeof message, given); "
    "if ({P}_encode_in_constant_time({value}, message) == {U}_NO_RANDOMNESS) exit(6);"
)
LOOP = """
int main(int count, char **arguments)
{{
    static stream given;
    uint64_t bits[64], place;
    const int draws = count > 1 ? atoi(arguments[1]) : 0;
    while (scanf("%" SCNx64, &place) == 1) {{
        const uint32_t round = (uint32_t)number();
        const uint64_t client = number();
        uint64_t size = number();
        for (uint64_t at = 0; at < size; ++at) bits[at] = number();
        given.count = number();
        given.used = 0;
        for (uint64_t at = 0; at < given.count; ++at) given.words[at] = number();
        switch (place) {{
{cases}
        default: return 7;
        }}
    }}
    return 0;
}}
"""


def run_function(deployment: Deployment) -> str:
    prefix, program = deployment.identifier, deployment.program
    value = {"item": "bits[0]", "number": "numbers[0]", "vector": "numbers"}[deployment.input_kind]
    names = {"P": prefix, "U": prefix.upper(), "value": value}
    count = deployment.description().dimension or 1
    twice = "" if program.constant_time is None else CONSTANT_TIME.format(**names)
    return RUN.format(**names, count=count, place="round, client, " if program.public_words else "", constant_time=twice)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("c")
    main = MAIN
    for deployment in deployments().values():
        for path, text in c_client(deployment.description()).items():
            (folder / path).write_text(text, encoding="ascii")
            main += f'#include "{path}"\n'
        main += run_function(deployment)
    switch = "\n".join(
        f"        case {place}: run_{deployment.identifier}(draws, round, client, bits, &given); break;"
        for place, deployment in enumerate(deployments().values())
    )
    (folder / "main.c").write_text(main + LOOP.format(cases=switch), encoding="ascii")
    return folder


def compiled(folder: Path, name: str, flags: tuple[str, ...]) -> Path:
    ended = subprocess.run(["gcc", *flags, "main.c", "-o", name, "-lm"], cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[:3000]
    return folder / name


@pytest.fixture(scope="module")
def strict(sources: Path) -> Path:
    return compiled(sources, "strict", STRICT)


def answers(program: Path, lines: str, *arguments: str) -> list[str]:
    return subprocess.run([program, *arguments], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("flags", [STRICT, FUSED], ids=["strict", "fused"])
def test_messages_equal_the_python_clients(sources: Path, strict: Path, flags: tuple[str, ...]) -> None:
    program = strict if flags is STRICT else compiled(sources, "fused", flags)
    printed = answers(program, "\n".join(case.line(NAMES.index(case.client)) for case in cases()))
    expected = []
    for case in cases():
        twice = deployments()[case.client].program.constant_time is not None
        expected += [f"0 {case.message} {len(case.words)}"] * (1 + twice)
    assert printed == expected
    assert all(sum(case.client == name for case in cases()) >= 1000 for name in NAMES)


def test_inputs_outside_the_domain_are_refused(strict: Path) -> None:
    lines, expected = [], []
    for place, deployment in enumerate(deployments().values()):
        for value in bad_inputs(deployment):
            lines.append(line_of(place, 0, 0, value, ()))
            # BAD_INPUT, and no word was taken.
            expected += ["-1  0"] * (1 + (deployment.program.constant_time is not None))
    assert answers(strict, "\n".join(lines)) == expected


@pytest.mark.parametrize("name", DRAWN)
def test_messages_with_the_systems_words_follow_the_law(strict: Path, name: str) -> None:
    line = line_of(NAMES.index(name), 0, 0, DRAWN[name], ())
    messages = subprocess.run([strict, str(DRAWS)], input=line.encode("ascii"), capture_output=True, check=True).stdout
    check_frequencies(name, messages)


def test_public_words_are_those_of_the_server(sources: Path) -> None:
    deployment = deployments()["recursive"]
    places = [(0, 0), (2, 1), (7, 2**32), (2**32 - 1, LARGEST)]
    prints = "\n".join(
        f"    recursive_public_start(&state, {round_number}u, UINT64_C({client}));\n"
        f'    for (int place = 0; place < {PUBLIC_WORDS}; ++place) printf("%" PRIu64 "\\n", recursive_public_next(&state));'
        for round_number, client in places
    )
    start = '#include <inttypes.h>\n#include <stdio.h>\n#include "recursive.h"\n'
    (sources / "public.c").write_text(
        f"{start}int main(void)\n{{\n    recursive_public_state state;\n{prints}\n    return 0;\n}}\n", encoding="ascii"
    )
    subprocess.run(["gcc", *STRICT, "public.c", "-o", "public"], cwd=sources, check=True)
    expected = [
        public_words(bytes.fromhex(deployment.hash), round_number, np.array([client], dtype=np.uint64), PUBLIC_WORDS)
        for round_number, client in places
    ]
    assert list(map(int, answers(sources / "public", ""))) == np.concatenate(expected).ravel().tolist()


def test_a_wrong_law_is_seen() -> None:
    # Items are kept a tenth less often than they should be.
    name, rng = "response", np.random.default_rng(0)
    kept = deployments()[name].program.constants["kept"]
    assert isinstance(kept, int)
    letters = np.where(rng.random(DRAWS) < 0.9 * kept / 2.0**64, DRAWN[name][0], rng.integers(37, size=DRAWS))
    with pytest.raises(AssertionError):
        check_frequencies(name, (letters.astype(np.uint8) << 2).tobytes())


def product_and_sum(value: Number, words: Source, fields: Fields, *, low: Number) -> None:
    rest = value * value - low
    fields[0] = Word(rest * 1152921504606846976.0) + words.next()


def test_products_are_rounded_before_they_are_added(tmp_path: Path) -> None:
    """The square of 1 + 2^-30 rounds to 1 + 2^-29; a fused operation would keep its last bit, 2^-60."""
    value = 1 + 2.0**-30
    program = ClientProgram(product_and_sum, {"low": 1 + 2.0**-29}, 8)
    description = ClientDescription("toy", "toy", "toy", "none", "toy", f"{1:064x}", "1", "number", None, None, program)
    (text,) = c_client(description).values()
    main = """#include <stdio.h>
static uint64_t zero(void *state) { (void)state; return 0; }
int main(void)
{
    volatile double value = VALUE;
    toy_source words = { zero, NULL };
    uint8_t message[1];
    if (toy_encode_with(value, words, message) != TOY_OK) return 1;
    printf("%d\\n", message[0]);
    return 0;
}
"""
    rounded = "volatile double product"
    assert rounded in text
    printed = {}
    for name, source in {"toy": text, "fused": text.replace(rounded, "double product")}.items():
        (tmp_path / "main.c").write_text(source + main.replace("VALUE", repr(value)), encoding="ascii")
        (printed[name],) = answers(compiled(tmp_path, name, FUSED), "")
    assert printed["toy"] == "0"
    # Without the rounding, processors with fused operations give another message.
    assert printed["fused"] == ("1" if has_fused_operations() else "0")


def has_fused_operations() -> bool:
    macros = subprocess.run(["gcc", *FUSED, "-dM", "-E", "-"], input="", capture_output=True, text=True, check=True).stdout
    return "__FP_FAST_FMA " in macros


@pytest.mark.parametrize("flag", ["-ffast-math", "-ffinite-math-only"])
def test_arithmetic_that_forgets_infinities_is_refused(sources: Path, flag: str) -> None:
    ended = subprocess.run(["gcc", *STRICT, flag, "-fsyntax-only", "main.c"], cwd=sources, capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert "compile without -ffast-math" in ended.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86 has an arithmetic of 80 bits")
def test_arithmetic_of_80_bits_is_refused(sources: Path) -> None:
    command = ["gcc", *STRICT, "-mfpmath=387", "-fsyntax-only", "main.c"]
    ended = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert "rounded to 64 bits after every operation" in ended.stderr


def test_headers_compile_without_the_systems_words(sources: Path) -> None:
    macros = [f"-D{deployment.identifier.upper()}_NO_SYSTEM_RANDOMNESS" for deployment in deployments().values()]
    includes = [option for deployment in deployments().values() for option in ("-include", f"{deployment.identifier}.h")]
    (sources / "empty.c").write_text("typedef int nothing;\n", encoding="ascii")
    command = ["gcc", *STRICT, *macros, *includes, "-fsyntax-only", "empty.c"]
    ended = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[:3000]


def test_infinite_sums_and_tiny_numbers_round_as_in_python(strict: Path) -> None:
    extremes = extreme_cases()
    assert answers(strict, "\n".join(case.line(NAMES.index(case.client)) for case in extremes)) == [
        f"0 {case.message} {len(case.words)}" for case in extremes
    ]


def test_a_client_of_many_numbers_takes_a_workspace_of_its_caller(tmp_path: Path) -> None:
    deployment, given = large_cases()
    for path, text in c_client(deployment.description()).items():
        (tmp_path / path).write_text(text, encoding="ascii")
    main = """#include "large.h"
#include <stdio.h>
static const uint64_t *given;
static uint64_t next(void *state) { (void)state; return *given++; }
static double workspace[LARGE_WORKSPACE];
int main(void)
{
    const large_source words = { next, NULL };
    uint8_t message[LARGE_MESSAGE_BYTES];
"""
    for place, case in enumerate(given):
        numbers = ", ".join(number.hex() for number in case.value)
        main += f"""    static const double vector{place}[] = {{{numbers}}};
    static const uint64_t words{place}[] = {{{", ".join(f"{word}u" for word in case.words)}}};
    given = words{place};
    if (large_encode_with(vector{place}, 0, {case.index}, words, workspace, message) != LARGE_OK) return 1;
    for (uint32_t byte = 0; byte < LARGE_MESSAGE_BYTES; ++byte) printf("%02x", message[byte]);
    puts("");
"""
    (tmp_path / "main.c").write_text(main + "    return large_encode(vector0, 0, 0, workspace, message);\n}\n", encoding="ascii")
    # The stack holds less than the workspace.
    program = compiled(tmp_path, "large", (*STRICT, "-Wframe-larger-than=65536"))
    assert answers(program, "") == [case.message for case in given]


SECRETS = """#include <valgrind/memcheck.h>
#include <stdio.h>
#include "table.h"
static uint64_t next(void *state)
{
    uint64_t word = *(uint64_t *)state += UINT64_C(0x9e3779b97f4a7c15);
    VALGRIND_MAKE_MEM_UNDEFINED(&word, sizeof word);
    return word;
}
int main(void)
{
    uint64_t state = 0, fields[TABLE_FIELDS] = {0};
    table_source words = { next, &state };
    for (int step = 0; step <= 20; ++step) {
        double value = step / 20.0;
        VALGRIND_MAKE_MEM_UNDEFINED(&value, sizeof value);
        CALL(value, &words, fields);
        VALGRIND_MAKE_MEM_DEFINED(fields, sizeof fields);
        printf("%d\\n", (int)fields[0]);
    }
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="secrets in compiled clients are followed by valgrind, which is missing")
@pytest.mark.parametrize("optimised", ["-O1", "-O2", "-O3"])
def test_compiled_clients_in_constant_time_do_not_branch_on_secrets(tmp_path: Path, optimised: str) -> None:
    """Memcheck reports each conditional jump and address that depends on the value or on the words, which are marked as undefined."""
    for path, text in c_client(deployments()["table"].description()).items():
        (tmp_path / path).write_text(text, encoding="ascii")
    (tmp_path / "main.c").write_text(SECRETS, encoding="ascii")
    errors = {}
    for name in ("letter_of_number_in_constant_time", "letter_of_number"):
        program = compiled(tmp_path, name, ("-std=gnu99", optimised, "-g", f"-DCALL=table_{name}"))
        command = ["valgrind", "--quiet", "--error-exitcode=9", program]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert len(ended.stdout.splitlines()) == 21
        errors[name] = ended.returncode, ended.stderr
    assert errors["letter_of_number_in_constant_time"] == (0, "")
    # The other client does branch.
    assert errors["letter_of_number"][0] == 9
