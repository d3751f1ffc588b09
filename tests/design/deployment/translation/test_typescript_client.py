"""Clients in TypeScript and JavaScript send the messages of Python's clients, and draw from the exact laws.

Draws have no seed: each chi-square test fails by chance in one run of 10**9.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from quietbits.design.deployment.translation.typescript_client import typescript_client
from quietbits.tests.oracles.translated_clients import (
    CLIENT,
    DIMENSION,
    DRAWS,
    ITEMS,
    ROUND,
    answers,
    assert_drawn_from_the_exact_law,
    descriptions,
)

NODE, TSC = shutil.which("node"), shutil.which("tsc")
needs_node = pytest.mark.skipif(NODE is None, reason="no node runs JavaScript: install Node")
needs_tsc = pytest.mark.skipif(TSC is None, reason="no tsc checks TypeScript: npm install --global typescript")
# More than --strict asks for.
STRICTEST = [
    "--strict",
    "--noUnusedLocals",
    "--noUnusedParameters",
    "--noImplicitReturns",
    "--noImplicitOverride",
    "--noFallthroughCasesInSwitch",
    "--noUncheckedIndexedAccess",
    "--noPropertyAccessFromIndexSignature",
    "--exactOptionalPropertyTypes",
    "--verbatimModuleSyntax",
    "--isolatedModules",
]

# Seconds after which a process that does not end is stopped.
LONGEST_RUN = 300
# Answers requests, one a line of JSON, with all clients in one process.
DRIVER = """
import { readFileSync } from "node:fs";

const lines = readFileSync(0, "utf8").trimEnd().split("\\n").map((line) => JSON.parse(line));
const clients = new Map();
for (const { name } of lines) {
    if (!clients.has(name)) {
        clients.set(name, await import(`${name}-client`));
    }
}
const hex = (message) => Buffer.from(message).toString("hex");
// The deployment takes vectors, items, or numbers.
const parsed = (text) => (Array.isArray(text) ? Float64Array.from(text, Number) : Number(text));
const requests = {
    answer({ name, input, round, client, words }) {
        let used = 0;
        const source = { next: () => BigInt(words[used++]) };
        return `${hex(clients.get(name).encodeWith(parsed(input), source, Number(round), BigInt(client)))} ${used}`;
    },
    draw({ name, input, round, client, count }) {
        const counts = {};
        for (let draw = 0; draw < count; ++draw) {
            const digits = hex(clients.get(name).encode(parsed(input), round, BigInt(client)));
            counts[digits] = (counts[digits] ?? 0) + 1;
        }
        return JSON.stringify(counts);
    },
    refuse({ name, code }) {
        try {
            new Function("client", `return ${code}`)(clients.get(name));
            return "accepted";
        } catch (error) {
            return `${error.constructor.name}: ${error.message}`;
        }
    },
};
for (const line of lines) {
    console.log(requests[line.request](line));
}
"""


def package(name: str) -> str:
    return f"{name}-client"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a program and the packages of all clients."""
    folder = tmp_path_factory.mktemp("typescript")
    for description in descriptions():
        for path, text in typescript_client(description).items():
            file = folder / "packages" / package(description.name) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="ascii")
    (folder / "node_modules").symlink_to("packages")
    (folder / "driver.mjs").write_text(DRIVER, encoding="ascii")
    return folder


def run(folder: Path, requests: list[dict[str, object]]) -> list[str]:
    lines = "\n".join(json.dumps(request) for request in requests)
    return subprocess.run(
        ["node", "driver.mjs"], cwd=folder, input=lines, capture_output=True, text=True, check=True, timeout=LONGEST_RUN
    ).stdout.splitlines()


def compiled(folder: Path, *arguments: str) -> None:
    done = subprocess.run(["tsc", *STRICTEST, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def check_answers(folder: Path) -> None:
    given = answers()
    requests = [
        {
            "request": "answer",
            "name": answer.name,
            "input": answer.input.split(",") if "," in answer.input else answer.input,
            "round": answer.round_number,
            "client": answer.client,
            "words": answer.words,
        }
        for answer in given
    ]
    results = run(folder, requests)
    expected = [f"{answer.message} {len(answer.words)}" for answer in given]
    wrong = [(answer, result) for answer, line, result in zip(given, expected, results, strict=True) if line != result]
    assert wrong == []


@needs_node
def test_messages_equal_those_of_python_bit_for_bit(packages: Path) -> None:
    assert min([answer.name for answer in answers()].count(description.name) for description in descriptions()) >= 1000
    check_answers(packages)


@needs_node
@needs_tsc
def test_compiled_source_sends_the_same_messages(packages: Path, tmp_path: Path) -> None:
    names = [package(description.name) for description in descriptions()]
    sources = [f"packages/{name}/src/index.ts" for name in names]
    # The oldest library that has bigints is enough: the source names nothing of a browser or of Node.
    options = [
        "--target",
        "es2022",
        "--module",
        "es2022",
        "--lib",
        "es2020",
        "--rootDir",
        "packages",
        "--outDir",
        str(tmp_path / "emitted"),
    ]
    compiled(packages, *options, *sources)
    shutil.copytree(packages / "packages", tmp_path / "packages")
    for name in names:
        (tmp_path / "emitted" / name / "src" / "index.js").replace(tmp_path / "packages" / name / "index.js")
    (tmp_path / "node_modules").symlink_to("packages")
    shutil.copy(packages / "driver.mjs", tmp_path)
    check_answers(tmp_path)


@needs_tsc
def test_declarations_are_those_of_the_source_and_fit_a_users_program(packages: Path) -> None:
    lines = []
    for number, description in enumerate(descriptions()):
        name = package(description.name)
        value = {"item": "1", "number": "0.25", "vector": f"new Float32Array({DIMENSION})"}[description.input]
        public = f", {ROUND}, {CLIENT}n" if description.program.public_words else ""
        lines += [
            f'import * as client{number} from "{name}";',
            f'import * as source{number} from "./packages/{name}/src/index.js";',
            f"export const declared{number}: typeof source{number} = client{number};",
            f"export const written{number}: typeof client{number} = source{number};",
            f"export const message{number}: Uint8Array = client{number}.encode({value}{public});",
            f"export const bytes{number}: {description.program.message_bytes} = client{number}.MESSAGE_BYTES;",
            f"export const tested{number} = client{number}.encodeWith({value}, {{ next: () => 1n }}{public}).length;",
        ]
    (packages / "user.ts").write_text("\n".join(lines) + "\n", encoding="ascii")
    (packages / "package.json").write_text('{"type": "module"}', encoding="ascii")
    options = ["--noEmit", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext", "--lib", "es2022"]
    compiled(
        packages, *options, "user.ts", *(str(path.relative_to(packages)) for path in sorted((packages / "packages").glob("*/index.d.ts")))
    )


@needs_node
def test_draws_follow_the_exact_laws(packages: Path) -> None:
    requests = [
        {
            "request": "draw",
            "name": draws.name,
            "input": draws.input.split(",") if "," in draws.input else draws.input,
            "round": ROUND,
            "client": str(CLIENT),
            "count": draws.count,
        }
        for draws in DRAWS
    ]
    for draws, result in zip(DRAWS, run(packages, requests), strict=True):
        assert_drawn_from_the_exact_law(draws, json.loads(result))


REFUSALS = [
    ("sign", "client.encode(NaN)", "RangeError: value must be a finite number, got NaN"),
    ("sign", "client.encode(-Infinity)", "RangeError: value must be a finite number, got -Infinity"),
    ("sign", "client.encode('0.5')", "RangeError: value must be a finite number, got 0.5"),
    ("sign", "client.encode(undefined)", "RangeError: value must be a finite number, got undefined"),
    ("unary", f"client.encode({ITEMS})", f"RangeError: item must be a whole number from 0 to {ITEMS - 1}, got {ITEMS}"),
    ("unary", "client.encode(-1)", f"RangeError: item must be a whole number from 0 to {ITEMS - 1}, got -1"),
    ("unary", "client.encode(0.5)", f"RangeError: item must be a whole number from 0 to {ITEMS - 1}, got 0.5"),
    ("unary", "client.encode(1n)", f"RangeError: item must be a whole number from 0 to {ITEMS - 1}, got 1"),
    ("ball", "client.encode([1, 2])", f"RangeError: vector must have {DIMENSION} numbers, got 2"),
    ("ball", f"client.encode(Array({DIMENSION}).fill(0).with(3, NaN))", "RangeError: vector\\[3\\] must be a finite number, got NaN"),
    ("ball", f"client.encode(Array({DIMENSION}))", "RangeError: vector\\[0\\] must be a finite number, got undefined"),
    ("recursive", "client.encode(1)", "RangeError: round must be a whole number from 0 to 2\\*\\*32 - 1, got undefined"),
    ("recursive", "client.encode(1, 2 ** 32, 0)", "RangeError: round must be a whole number from 0 to 2\\*\\*32 - 1, got 4294967296"),
    ("recursive", "client.encode(1, 0, -1n)", "RangeError: client must be a whole number from 0 to 2\\*\\*64 - 1, a bigint .* got -1"),
    ("recursive", "client.encode(1, 0, 2n ** 64n)", "RangeError: client must be .* got 18446744073709551616"),
    ("recursive", "client.encode(1, 0, 2 ** 53)", "RangeError: client must be .* a bigint if it is above .* got 9007199254740992"),
]


@needs_node
def test_bad_input_is_refused_with_its_name_and_value(packages: Path) -> None:
    results = run(packages, [{"request": "refuse", "name": name, "code": code} for name, code, _ in REFUSALS])
    for (_, _, pattern), result in zip(REFUSALS, results, strict=True):
        assert re.match(pattern, result)


@needs_node
def test_no_message_without_randomness(packages: Path) -> None:
    missing = "Object.defineProperty(globalThis, 'crypto', { value: {}, configurable: true })"
    failing = "Object.defineProperty(globalThis, 'crypto', { value: { getRandomValues() { throw new Error('empty'); } } })"
    codes = [f"({missing}, client.encode(0.5))", "client.encode(0.5)", f"({failing}, client.encode(0.5))", "client.encode(0.5)"]
    results = run(packages, [{"request": "refuse", "name": "sign", "code": code} for code in codes])
    assert [result.partition(" must")[0] for result in results] == [
        *["Error: globalThis.crypto.getRandomValues"] * 2,
        *["Error: empty"] * 2,
    ]


@needs_node
def test_client_index_may_be_a_number(packages: Path) -> None:
    same = "String(client.encodeWith(1, { next: () => 9n }, 3, 7)) === String(client.encodeWith(1, { next: () => 9n }, 3, 7n))"
    code = f"(() => {{ if ({same}) throw new Error('same'); }})()"
    assert run(packages, [{"request": "refuse", "name": "recursive", "code": code}]) == ["Error: same"]


def test_packages_have_no_dependencies(packages: Path) -> None:
    for description in descriptions():
        folder = packages / "packages" / package(description.name)
        stated = json.loads((folder / "package.json").read_text(encoding="ascii"))
        assert stated["name"] == package(description.name)
        assert stated["type"] == "module"
        assert not [key for key in stated if "ependencies" in key]
        assert all((folder / file).is_file() for file in (*stated["files"], *stated["exports"]["."].values()))
        assert "import" not in (folder / "index.js").read_text(encoding="ascii").replace("import a polyfill", "")
