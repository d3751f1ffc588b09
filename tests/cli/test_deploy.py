"""`quietbits deploy`, `encode`, `decode` and `verify` of a deployment on the command line."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from typer.testing import Result

Run = Callable[..., Result]
DEPLOY = ("deploy", "hadamard-response", "--categories", 8, "--epsilon", 3, "--rounds", 2, "--name", "browser", "--output", "deployed")


@pytest.fixture
def deployed(run: Run, folder: Path) -> Path:
    result = run(*DEPLOY)
    assert result.exit_code == 0, result.stderr
    assert "browser: written to deployed" in result.stdout
    return folder / "deployed"


def test_from_a_deployment_to_an_estimate(deployed: Path, run: Run, folder: Path) -> None:
    assert {path.name for path in deployed.iterdir()} == {"README.md", "c", "deployment.json", "vectors.json"}
    assert run("verify", "deployed").exit_code == 0
    (folder / "data.csv").write_text("item\n" + "\n".join(str(number % 4) for number in range(4000)) + "\n")
    for output in ("m.qbm", "m.parquet"):
        result = run("encode", "deployed", "--data", "data.csv", "--column", "item", "--output", output, "--round", 1)
        assert result.exit_code == 0, result.stderr
        assert result.stdout.endswith(f"Messages: {output}, 4000 of round 1\n")
        result = run("decode", "deployed", output, "--round", 1, "--json", "--report", "report.html")
        assert result.exit_code == 0, result.stderr
        document: dict[str, Any] = json.loads(result.stdout)
        assert (document["accepted"], document["refused"], document["rounds_left"]) == (4000, 0, 0)
        truth = np.array([0.25] * 4 + [0.0] * 4)
        errors = (np.array(document["mean"]) - truth) / np.array(document["standard_error"])
        assert np.abs(errors).max() < 6
        assert "<svg" in (folder / "report.html").read_text()
    result = run("decode", "deployed", "m.qbm", "m.parquet", "--round", 1)
    assert result.exit_code == 0
    assert "8000" in result.stdout


@pytest.mark.usefixtures("deployed")
def test_faults_take_one_line(run: Run, folder: Path) -> None:
    (folder / "m.qbm").write_bytes(b"QBM\x01" + bytes(12))
    (folder / "other").mkdir()
    (folder / "other" / "deployment.json").write_text("{}")
    for typed, message in (
        (("decode", "deployed", "m.qbm"), "messages must be of the deployment"),
        (("decode", "deployed", "m.qbm", "--round", 2), "round_number must be"),
        (("decode", "deployed", "none.qbm"), "No such file"),
        (("decode", "other", "m.qbm"), "format must be 'quietbits-deployment/1'"),
        (("decode", "none", "m.qbm"), "No such file"),
        (("encode", "deployed", "--data", "m.qbm", "--output", "x.qbm"), ""),
        (("deploy", "gaussian", "--epsilon", 1, "--delta", 1e-6, "--output", "new"), "mechanism must be released as it is"),
        ((*DEPLOY[:-1], "other"), "output must be a new or empty folder"),
        ((*DEPLOY, "--language", "cobol"), "language must be one of"),
    ):
        result = run(*typed)
        assert result.exit_code == 2, typed
        assert message in result.stderr, typed
        assert result.stderr.strip().count("\n") == 0, result.stderr
    assert not (folder / "x.qbm").exists()
    assert not (folder / "new").exists()


def test_a_changed_folder_is_refused(deployed: Path, run: Run) -> None:
    (deployed / "c" / "browser.h").write_text("int x;\n")
    result = run("verify", "deployed")
    assert result.exit_code == 1
    assert "browser.h: the file was changed" in result.stderr
    document = json.loads(run("verify", "deployed", "--json").stdout)
    assert document["verified"] is False


def test_the_same_command_writes_the_same_folder(deployed: Path, run: Run) -> None:
    before = {path: path.read_bytes() for path in deployed.rglob("*.*")}
    document = json.loads(run(*DEPLOY, "--json").stdout)
    assert {path: path.read_bytes() for path in deployed.rglob("*.*")} == before
    assert document["sha256"] == json.loads((deployed / "deployment.json").read_text())["sha256"]
    successor = (*DEPLOY[:-1], "successor", "--supersedes", "deployed", "--valid-until", "2030-01-01", "--json")
    assert json.loads(run(*successor).stdout)["supersedes"] == document["sha256"]


def test_an_expired_deployment_is_encoded_with_a_warning(run: Run, folder: Path) -> None:
    (folder / "data.csv").write_text("item\n1\n2\n")
    for day, warned in (("2020-02-29", True), ("9999-12-31", False)):
        typed = ("deploy", "unary-encoding", "--categories", 8, "--epsilon", 3, "--valid-until", day, "--output", f"until-{day}")
        assert run(*typed).exit_code == 0
        result = run("encode", f"until-{day}", "--data", "data.csv", "--column", "item", "--output", f"{day}.qbm")
        assert result.exit_code == 0
        assert (f"WARNING: the deployment was valid until {day}" in result.stderr) == warned


def test_a_table_is_deployed(run: Run, folder: Path) -> None:
    design = ("design", "mvu", "--epsilon", 2, "--bits-in", 2, "--bits-out", 1, "--interval", 10, 60, "--output", "table.json")
    assert run(*design).exit_code == 0
    result = run("deploy", "table.json", "--output", "deployed", "--name", "age", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["message"] == {"fields": 1, "field_bits": 1, "bytes": 1}
    (folder / "data.csv").write_text("age\n" + "\n".join(str(20 + number % 30) for number in range(2000)) + "\n")
    assert run("encode", "deployed", "--data", "data.csv", "--column", "age", "--output", "m.qbm").exit_code == 0
    document: dict[str, Any] = json.loads(run("decode", "deployed", "m.qbm", "--json").stdout)
    assert abs(document["mean"] - 34.5) < 6 * document["standard_error"]
    assert run("verify", "deployed", "--json").exit_code == 0


# Programs that encode an item of each line, with random words of the system, and write the messages one after the other.
CLIENTS = 10_000
PROGRAMS: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {
    "c": (
        "main.c",
        """
#include <stdio.h>
#include "c/page.h"
int main(void)
{
    unsigned item;
    uint8_t message[PAGE_MESSAGE_BYTES];
    while (scanf("%u", &item) == 1) {
        if (page_encode(item, message) != PAGE_OK)
            return 1;
        fwrite(message, 1, PAGE_MESSAGE_BYTES, stdout);
    }
    return 0;
}
""",
        ("gcc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "main.c", "-o", "main"),
        ("./main",),
    ),
    "typescript": (
        "main.mjs",
        """
import { readFileSync } from "node:fs";
import { encode } from "./typescript/index.js";
const items = readFileSync(0, "utf8").trim().split("\\n").map(Number);
process.stdout.write(Buffer.concat(items.map((item) => Buffer.from(encode(item)))));
""",
        (),
        ("node", "main.mjs"),
    ),
    "rust": (
        "rust/src/main.rs",
        """
use std::io::{Read, Write};
fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    for item in text.lines() {
        let message = page_client::encode(item.parse().unwrap()).unwrap();
        std::io::stdout().write_all(&message).unwrap();
    }
}
""",
        ("cargo", "build", "--quiet", "--offline", "--manifest-path", "rust/Cargo.toml"),
        ("rust/target/debug/page-client",),
    ),
    "java": (
        "Main.java",
        """
public class Main {
    public static void main(String[] none) throws java.io.IOException {
        for (String item : new String(System.in.readAllBytes()).split("\\n")) {
            System.out.write(quietbits.PageClient.encode(Integer.parseInt(item)));
        }
        System.out.flush();
    }
}
""",
        (
            "javac",
            "--release",
            "11",
            "-Xlint:all",
            "-Werror",
            "-cp",
            "java",
            "-d",
            "classes",
            "Main.java",
            "java/quietbits/PageClient.java",
        ),
        ("java", "-cp", "classes", "Main"),
    ),
}


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_fleet_in_each_language_is_decoded_to_the_shares_that_it_holds(language: str, run: Run, folder: Path) -> None:
    """An engineer plans and deploys, 10,000 clients send, and a server estimates within the stated standard errors.

    The sum of 20 squared z-scores is below the chi-square quantile except with probability 1e-6.
    """
    source, text, build, command = PROGRAMS[language]
    tool = (build or command)[0]
    if shutil.which(tool) is None:
        pytest.skip(f"the clients need {tool}, which is missing")
    planned = run(*shlex.split("plan --clients 10000 --categories 20 --epsilon 2 --adjacency replace-one --trust local --json"))
    (row,) = (row for row in json.loads(planned.stdout)["mechanisms"] if row["name"] == "subset-selection")
    deploy = re.sub(r"--output \S+", f"--output fleet --name page --language {language}", row["deploy_command"].removeprefix("quietbits "))
    assert run(*shlex.split(deploy)).exit_code == 0
    assert run("verify", "fleet").exit_code == 0
    (folder / "fleet" / source).write_text(text)
    if build:
        built = subprocess.run(build, cwd=folder / "fleet", capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stderr
    items = np.random.default_rng(6).geometric(0.3, CLIENTS).clip(1, 20) - 1
    lines = "\n".join(map(str, items)).encode()
    sent = subprocess.run(command, cwd=folder / "fleet", input=lines, capture_output=True, check=False)
    assert sent.returncode == 0, sent.stderr
    header = b"QBM\x01" + bytes.fromhex(json.loads((folder / "fleet" / "deployment.json").read_text())["sha256"])[:8] + bytes(4)
    (folder / "messages.qbm").write_bytes(header + sent.stdout)
    (folder / "fleet" / source).unlink()
    result = run("decode", "fleet", "messages.qbm", "--json", "--report", "report.html")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert (document["accepted"], document["refused"]) == (CLIENTS, 0)
    errors = np.array(document["mean"]) - np.bincount(items, minlength=20) / CLIENTS
    assert np.sum((errors / np.array(document["standard_error"])) ** 2) < scipy.stats.chi2.isf(1e-6, 20)
    page = (folder / "report.html").read_text()
    assert "10,000" in page or "10000" in page
    assert re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', page) == []
