"""Clients in Java send the messages of Python's clients, and draw from the exact laws.

Draws have no seed: each chi-square test fails by chance in one run of 10**9.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from quietbits.design.deployment.translation.client_description import ClientDescription
from quietbits.design.deployment.translation.java_client import java_client
from quietbits.design.deployment.translation.java_language import LINES_OF_TEXT, MOST_NUMBERS, WORDS_OF_LINE
from quietbits.tests.oracles.translated_clients import (
    CLIENT,
    DIMENSION,
    DRAWS,
    ITEMS,
    OPERATIONS,
    ROUND,
    answers,
    assert_drawn_from_the_exact_law,
    descriptions,
)

pytestmark = pytest.mark.skipif(shutil.which("javac") is None or shutil.which("java") is None, reason="no javac and java: install a JDK")

# Seconds after which a process that does not end is stopped.
LONGEST_RUN = 300
# Answers requests, one a line, with all clients in one process.
DRIVER = """
package driver;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.TreeMap;

public final class Driver {
    private Driver() {
    }

    private interface Words {
        long next();
    }

    private static double[] vector(String text) {
        String[] numbers = text.split(",");
        double[] vector = new double[numbers.length];
        for (int place = 0; place < vector.length; ++place) {
            vector[place] = Double.parseDouble(numbers[place]);
        }
        return vector;
    }

    private static byte[] encode(String name, String input, long round, long client) {
        switch (name) {
ENCODE
            default: throw new AssertionError(name);
        }
    }

    private static byte[] encodeWith(String name, String input, Words words, long round, long client) {
        switch (name) {
ENCODE_WITH
            default: throw new AssertionError(name);
        }
    }

    private static String hex(byte[] message) {
        StringBuilder digits = new StringBuilder();
        for (byte part : message) {
            digits.append(Character.forDigit(part >> 4 & 15, 16)).append(Character.forDigit(part & 15, 16));
        }
        return digits.toString();
    }

    private static String answer(String[] line) {
        String[] words = line[5].split(",");
        int[] used = {0};
        long client = Long.parseUnsignedLong(line[4]);
        byte[] message = encodeWith(line[1], line[2], () -> Long.parseUnsignedLong(words[used[0]++]), Long.parseLong(line[3]), client);
        return hex(message) + " " + used[0];
    }

    private static String draw(String[] line) {
        Map<String, Integer> counts = new TreeMap<>();
        for (int draw = 0; draw < Integer.parseInt(line[5]); ++draw) {
            byte[] message = encode(line[1], line[2], Long.parseLong(line[3]), Long.parseUnsignedLong(line[4]));
            counts.merge(hex(message), 1, Integer::sum);
        }
        return counts.toString();
    }

    private static String refuse(String[] line) {
        try {
            return hex(encode(line[1], line[2], Long.parseLong(line[3]), Long.parseUnsignedLong(line[4])));
        } catch (IllegalArgumentException error) {
            return error.getMessage();
        }
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "US-ASCII"));
        StringBuilder results = new StringBuilder();
        for (String text = lines.readLine(); text != null; text = lines.readLine()) {
            String[] line = text.split(" ");
            String result = line[0].equals("answer") ? answer(line) : line[0].equals("draw") ? draw(line) : refuse(line);
            results.append(result).append("\\n");
        }
        System.out.print(results);
    }
}
"""
STRICTEST = ["--release", "11", "-Xlint:all", "-Werror", "-Xdoclint:all,-missing"]


def class_name(description: ClientDescription) -> str:
    (path,) = java_client(description)
    return Path(path).stem


def cases(words: str, method: str) -> str:
    """Return the driver's choice of a client, each with the arguments that it takes."""
    lines = []
    for description in descriptions():
        given = {"number": "Double.parseDouble(input)", "item": "Integer.parseInt(input)", "vector": "vector(input)"}[description.input]
        public = ", round, client" if description.program.public_words else ""
        lines.append(f'case "{description.name}": return quietbits.{class_name(description)}.{method}({given}{words}{public});')
    return "\n".join(f"            {line}" for line in lines)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of all clients' classes and a driver, compiled without a warning."""
    folder = tmp_path_factory.mktemp("java")
    driver = DRIVER.replace("ENCODE_WITH", cases(", words::next", "encodeWith")).replace("ENCODE", cases("", "encode"))
    sources = {"driver/Driver.java": driver}
    for description in descriptions():
        sources |= java_client(description)
    for path, text in sources.items():
        file = folder / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="ascii")
    done = subprocess.run(["javac", *STRICTEST, "-d", "classes", *sources], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return folder / "classes"


def run(classes: Path, requests: list[str]) -> list[str]:
    command = ["java", "-cp", str(classes), "driver.Driver"]
    return subprocess.run(
        command, input="\n".join(requests), capture_output=True, text=True, check=True, timeout=LONGEST_RUN
    ).stdout.splitlines()


def test_messages_equal_those_of_python_bit_for_bit(classes: Path) -> None:
    given = answers()
    assert min([answer.name for answer in given].count(description.name) for description in descriptions()) >= 1000
    requests = [f"answer {answer.name} {answer.input} {answer.round_number} {answer.client} {','.join(answer.words)}" for answer in given]
    expected = [f"{answer.message} {len(answer.words)}" for answer in given]
    wrong = [(answer, result) for answer, line, result in zip(given, expected, run(classes, requests), strict=True) if line != result]
    assert wrong == []


def test_draws_follow_the_exact_laws(classes: Path) -> None:
    requests = [f"draw {draws.name} {draws.input} {ROUND} {CLIENT} {draws.count}" for draws in DRAWS]
    for draws, result in zip(DRAWS, run(classes, requests), strict=True):
        assert_drawn_from_the_exact_law(draws, {digits: int(count) for digits, count in re.findall(r"([0-9a-f]+)=(\d+)", result)})


def test_bad_input_is_refused_with_its_name_and_value(classes: Path) -> None:
    zeros = ",".join(["0.0"] * (DIMENSION - 1))
    refusals = [
        ("sign NaN 0 0", "value must be a finite number, got NaN"),
        ("sign -Infinity 0 0", "value must be a finite number, got -Infinity"),
        (f"unary {ITEMS} 0 0", f"item must be a whole number from 0 to {ITEMS - 1}, got {ITEMS}"),
        ("unary -1 0 0", f"item must be a whole number from 0 to {ITEMS - 1}, got -1"),
        ("ball 1.0,2.0 0 0", f"vector must have {DIMENSION} numbers, got 2"),
        (f"ball {zeros},NaN 0 0", f"vector[{DIMENSION - 1}] must be a finite number, got NaN"),
        ("recursive 1 -1 0", "round must be a whole number from 0 to 2**32 - 1, got -1"),
        ("recursive 1 4294967296 0", "round must be a whole number from 0 to 2**32 - 1, got 4294967296"),
    ]
    assert run(classes, [f"refuse {request}" for request, _ in refusals]) == [message for _, message in refusals]


def test_clients_have_tables_of_every_length() -> None:
    constants = {description.name: description.program.constants for description in descriptions()}
    lengths = [len(constants["points"]["inverses"]), len(constants[OPERATIONS]["table"]), len(constants[OPERATIONS]["roots"])]
    assert lengths[0] <= MOST_NUMBERS < min(lengths[1:])
    # Its digits need several texts.
    assert len(constants["large-table"]["cumulative"]) > 2 * WORDS_OF_LINE * LINES_OF_TEXT


def test_package_may_be_chosen() -> None:
    description = descriptions()[0]
    ((path, text),) = java_client(description, package="org.example.telemetry").items()
    assert path == "org/example/telemetry/LetterClient.java"
    assert text.startswith("package org.example.telemetry;\n")
