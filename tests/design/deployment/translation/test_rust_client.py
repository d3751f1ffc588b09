"""Clients in Rust: messages equal the Python client's, follow the stated law, and keep out inputs outside the domain.

All deployments are compiled into one program.
"""

import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from deployed_clients import DRAWN, DRAWS, LARGEST, bad_inputs, cases, check_frequencies, deployments, extreme_cases, large_cases, line_of

from quietbits.design.deployment.client_program import ClientProgram
from quietbits.design.deployment.clients.kinds import Fields, Number, Source, Word, floor, select, sqrt
from quietbits.design.deployment.deployment import Deployment
from quietbits.design.deployment.public_words import public_words
from quietbits.design.deployment.python_client import GivenWords
from quietbits.design.deployment.translation.client_description import ClientDescription
from quietbits.design.deployment.translation.rust_client import rust_client

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="clients in Rust are compiled with cargo, which is missing")
NAMES = list(deployments())

MAIN = """#![deny(warnings)]
use std::io::{BufRead, Write};

struct Given {
    words: Vec<u64>,
    used: usize,
}

fn print<const N: usize>(answer: Result<[u8; N], String>, used: usize) {
    match answer {
        Ok(message) => {
            let digits: String = message.iter().map(|byte| format!("{byte:02x}")).collect();
            println!("ok {digits} {used}");
        }
        Err(error) => println!("{error} {used}"),
    }
}
"""
RUN = """
impl {C}::Words for Given {{
    fn next(&mut self) -> u64 {{
        self.used += 1;
        self.words[self.used - 1]
    }}
}}

fn run_{P}(draws: usize, round: u32, client: u64, bits: &[u64], given: &mut Given) {{
    let numbers: Vec<f64> = bits.iter().map(|bits| f64::from_bits(*bits)).collect();
    let _ = (round, client, &numbers);
    for _ in 0..draws {{
        std::io::stdout().write_all(&{C}::encode({value}{place}).unwrap()).unwrap();
    }}
    if draws > 0 {{
        return;
    }}
    let answer = {C}::encode_with({value}{place}, given);
    print(answer.map_err(|error| format!("{{error:?}}")), given.used);
    {constant_time}
}}
"""
CONSTANT_TIME = """given.used = 0;
    let answer = {C}::encode_in_constant_time_with({value}, given);
    print(answer.map_err(|error| format!("{{error:?}}")), given.used);
    assert!({C}::encode_in_constant_time({value}) != Err({C}::Error::NoRandomness));"""
LOOP = """
fn main() {{
    let draws = std::env::args().nth(1).map_or(0, |count| count.parse().unwrap());
    for line in std::io::stdin().lock().lines() {{
        let line: Vec<u64> = line.unwrap().split(' ').map(|word| u64::from_str_radix(word, 16).unwrap()).collect();
        let size = line[3] as usize;
        let mut given = Given {{ words: line[5 + size..].to_vec(), used: 0 }};
        let (bits, round, client) = (&line[4..4 + size], line[1] as u32, line[2]);
        match line[0] {{
{cases}
            place => panic!("no client {{place}}"),
        }}
    }}
}}
"""


def crate(deployment: Deployment) -> str:
    return f"{deployment.identifier}_client"


def run_function(deployment: Deployment) -> str:
    value = {"item": "bits[0]", "number": "numbers[0]", "vector": "&numbers"}[deployment.input_kind]
    names = {"P": deployment.identifier, "C": crate(deployment), "value": value}
    twice = "" if deployment.program.constant_time is None else CONSTANT_TIME.format(**names)
    return RUN.format(**names, place=", round, client" if deployment.program.public_words else "", constant_time=twice)


def write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="ascii")


def cargo(folder: Path, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["cargo", command, "--offline", "--quiet", *arguments], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rust")
    for deployment in deployments().values():
        write(folder / deployment.identifier, rust_client(deployment.description()))
    cases_of = "\n".join(
        f"            {place} => run_{deployment.identifier}(draws, round, client, bits, &mut given),"
        for place, deployment in enumerate(deployments().values())
    )
    paths = "\n".join(
        f'{crate(deployment).replace("_", "-")} = {{ path = "../{deployment.identifier}" }}' for deployment in deployments().values()
    )
    driver = f'[package]\nname = "driver"\nversion = "1.0.0"\nedition = "2021"\n\n[dependencies]\n{paths}\n'
    main = MAIN + "".join(map(run_function, deployments().values())) + LOOP.format(cases=cases_of)
    write(folder, {"Cargo.toml": '[workspace]\nresolver = "2"\nmembers = ["*"]\nexclude = ["target"]\n'})
    write(folder / "driver", {"Cargo.toml": driver, "src/main.rs": main})
    return folder


@pytest.fixture(scope="module")
def driver(workspace: Path) -> Path:
    # Checks of overflow stay on in the optimised program.
    ended = cargo(workspace, "build", "--release", "--config", "profile.release.overflow-checks=true")
    assert ended.returncode == 0, ended.stderr[:3000]
    assert ended.stderr == ""
    return workspace / "target" / "release" / "driver"


def answers(program: Path, lines: str) -> list[str]:
    return subprocess.run([program], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()


def test_messages_equal_the_python_clients(driver: Path) -> None:
    given = [*cases(), *extreme_cases()]
    expected = []
    for case in given:
        twice = deployments()[case.client].program.constant_time is not None
        expected += [f"ok {case.message} {len(case.words)}"] * (1 + twice)
    assert answers(driver, "\n".join(case.line(NAMES.index(case.client)) for case in given)) == expected


def test_inputs_outside_the_domain_are_refused(driver: Path) -> None:
    lines, expected = [], []
    for place, deployment in enumerate(deployments().values()):
        values = bad_inputs(deployment)
        if deployment.input_kind == "vector":
            values += [(), (0.1,) * 4, (0.1,) * 6]
        for value in values:
            lines.append(line_of(place, 0, 0, value, ()))
            expected += ["BadInput 0"] * (1 + (deployment.program.constant_time is not None))
    assert answers(driver, "\n".join(lines)) == expected


@pytest.mark.parametrize("name", DRAWN)
def test_messages_with_the_systems_words_follow_the_law(driver: Path, name: str) -> None:
    line = line_of(NAMES.index(name), 0, 0, DRAWN[name], ())
    messages = subprocess.run([driver, str(DRAWS)], input=line.encode("ascii"), capture_output=True, check=True).stdout
    check_frequencies(name, messages)


@pytest.mark.parametrize("features", [(), ("--no-default-features",)], ids=["std", "no_std"])
def test_clippy_has_no_warning(workspace: Path, features: tuple[str, ...]) -> None:
    if shutil.which("cargo-clippy") is None:
        pytest.skip("clippy is missing")
    # The driver calls `encode`, which needs std.
    ended = cargo(workspace, "clippy", "--workspace", "--exclude", "driver", *features, "--", "-D", "warnings")
    assert ended.returncode == 0, ended.stderr[:3000]
    assert ended.stderr == ""


def every_operation(value: Number, words: Source, fields: Fields, *, low: Number) -> None:
    """Write the whole part of a number, and its distance from it above `low`, as the fraction of a root."""
    # The names of variables are keywords of Rust.
    loop = sqrt(value)
    match = floor(loop)
    above = select(loop - match > low, loop - match, low)
    fields[0] = Word(match)
    fields[1] = Word(above * 9007199254740992.0)
    fields[2] = words.next() >> 3


def test_square_roots_and_whole_parts_are_those_of_ieee_754(tmp_path: Path) -> None:
    """Compare roots, whole parts and choices of the frame, which core lacks, with Python's by hand-written calls."""
    program = ClientProgram(every_operation, {"low": 0.25}, 62, fields=3)
    facts = ("toy", "toy", "toy", "none", "toy", f"{1:064x}", "1", "number", None, None)
    write(tmp_path, rust_client(ClientDescription(*facts, program)))
    sampler = tmp_path / "src" / "sampler.rs"
    calls = """
#[test]
fn writes() {
    let mut answers = std::string::String::new();
    for line in std::fs::read_to_string("numbers").unwrap().lines() {
        let bits = u64::from_str_radix(line, 16).unwrap();
        let number = f64::from_bits(bits);
        let chosen = select(bits & 1 == 1, number, -number);
        let answer = [sqrt(number.abs()), floor(number), chosen].map(f64::to_bits);
        answers += &std::format!("{:x} {:x} {:x}\\n", answer[0], answer[1], answer[2]);
    }
    std::fs::write("answers", answers).unwrap();
    assert!(sqrt(-1.0).is_nan() && sqrt(f64::NAN).is_nan() && sqrt(f64::INFINITY) == f64::INFINITY);
}
"""
    for value in (0.0, 2.0, 6.3, 1e10, 12345.678):
        fields = [0, 0, 0]
        every_operation(value, GivenWords(np.array([LARGEST], dtype=np.uint64)), fields, low=0.25)
        calls += f"""
#[test]
fn operations_on_{int(value)}() {{
    struct Last;
    impl Words for Last {{
        fn next(&mut self) -> u64 {{
            u64::MAX
        }}
    }}
    let mut fields = [0; 3];
    every_operation({value!r}, &mut Last, &mut fields);
    assert_eq!(fields, {fields});
}}
"""
    sampler.write_text(sampler.read_text(encoding="ascii") + calls, encoding="ascii")
    rng = np.random.default_rng(1)
    bits = rng.integers(2**64, size=100_000, dtype=np.uint64)
    squares = (rng.integers(1, 2**26, size=5_000).astype(float) ** 2 * 2.0 ** rng.integers(-200, 200, 5_000)).view(np.uint64)
    near = np.concatenate([squares + np.uint64(step) for step in (0, 1, 2)] + [squares - np.uint64(1)])
    tiny = rng.integers(2**52, size=5_000, dtype=np.uint64) >> rng.integers(52, size=5_000).astype(np.uint64)
    plain = (rng.normal(size=20_000) * 10.0 ** rng.integers(0, 17, 20_000)).view(np.uint64)
    ends = np.array([0.0, 5e-324, 1.0, -1.0, -0.5, 2.0**52, 2.0**52 - 0.5, 1.7976931348623157e308, 2.2250738585072014e-308]).view(np.uint64)
    numbers = np.concatenate([bits, near, tiny, plain, ends]).view(float)
    numbers = numbers[np.isfinite(numbers)]
    (tmp_path / "numbers").write_text("\n".join(f"{number:x}" for number in numbers.view(np.uint64)), encoding="ascii")
    ended = cargo(tmp_path, "test", "--lib")
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[:2000]
    assert "6 passed" in ended.stdout
    lines = (tmp_path / "answers").read_text(encoding="ascii").splitlines()
    printed = np.array([[int(word, 16) for word in line.split()] for line in lines], dtype=np.uint64)
    # Python's floor of -0.0 is 0.
    wholes = np.array([float(math.floor(number)) for number in numbers])
    chosen = np.where(numbers.view(np.uint64) & np.uint64(1) == 1, numbers, -numbers)
    expected = [np.array([math.sqrt(abs(number)) for number in numbers]), wholes, chosen]
    np.testing.assert_array_equal(printed, np.stack(expected, axis=1).view(np.uint64))


def test_public_words_are_those_of_the_server(tmp_path: Path) -> None:
    deployment = deployments()["recursive"]
    text = rust_client(deployment.description())
    checks = ""
    for round_number, client in [(0, 0), (2, 1), (7, 2**32), (2**32 - 1, LARGEST)]:
        (expected,) = public_words(bytes.fromhex(deployment.hash), round_number, np.array([client], dtype=np.uint64), 20).tolist()
        checks += f"    let mut words = PublicWords::new({round_number}, {client});\n"
        checks += f"    for expected in {expected} {{\n        assert_eq!(words.next(), expected);\n    }}\n"
    text["src/public_words.rs"] += f"\n#[test]\nfn public_words_are_those_of_the_server() {{\n{checks}}}\n"
    write(tmp_path, text)
    ended = cargo(tmp_path, "test", "--lib")
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    assert "1 passed" in ended.stdout


@pytest.mark.parametrize("path", ["/dev/null", "/no/such/file"])
def test_a_system_without_words_gives_no_message(tmp_path: Path, path: str) -> None:
    """The source names another file than the system's: an empty one, or none."""
    text = rust_client(deployments()["table"].description())
    assert text["src/lib.rs"].count('File::open("/dev/urandom")') == 1
    text["src/lib.rs"] = text["src/lib.rs"].replace('File::open("/dev/urandom")', f'File::open("{path}")')
    text["src/lib.rs"] += """
#[test]
fn no_words() {
    assert_eq!(encode(0.5), Err(Error::NoRandomness));
    assert_eq!(encode_in_constant_time(0.5), Err(Error::NoRandomness));
    assert_eq!(std::format!("{}", Error::NoRandomness), "the system gave no random words");
    let error: &dyn std::error::Error = &Error::BadInput;
    assert!(std::format!("{error}").starts_with("the input must be a finite number"));
}
"""
    write(tmp_path, text)
    ended = cargo(tmp_path, "test", "--lib")
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    assert "1 passed" in ended.stdout


def test_a_client_of_many_numbers_takes_a_workspace_of_its_caller(tmp_path: Path) -> None:
    deployment, given = large_cases()
    text = rust_client(deployment.description())
    checks = ""
    for case in given:
        bytes_of = ", ".join(f"0x{byte:02x}" for byte in bytes.fromhex(case.message))
        checks += f"""    let mut words = Given(&{list(case.words)});
    let vector: [f64; {len(case.value)}] = {list(case.value)};
    assert_eq!(encode_with(&vector, 0, {case.index}, &mut words, &mut workspace), Ok([{bytes_of}]));
    assert_eq!(encode_with(&vector, 0, 0, &mut words, &mut workspace[1..]), Err(Error::ShortWorkspace));
    assert!(encode(&vector, 0, 0).is_ok());
"""
    text["src/lib.rs"] += f"""
#[cfg(test)]
struct Given(&'static [u64]);

#[cfg(test)]
impl Words for Given {{
    fn next(&mut self) -> u64 {{
        let word = self.0[0];
        self.0 = &self.0[1..];
        word
    }}
}}

#[test]
fn messages_equal() {{
    let mut workspace = std::vec![1.0; WORKSPACE];
{checks}}}
"""
    write(tmp_path, text)
    ended = cargo(tmp_path, "test", "--lib")
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    assert ended.stderr == ""
    if shutil.which("cargo-clippy") is not None:
        ended = cargo(tmp_path, "clippy", "--", "-D", "warnings")
        assert (ended.returncode, ended.stderr) == (0, "")
