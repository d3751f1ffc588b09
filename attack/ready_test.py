"""A failed case as a test that fails until the fault is fixed."""

import re
from pathlib import Path

from .cases import Arguments, Attack

LONGEST_TEXT = 3000


def ready_test(attack: Attack, case: Arguments, seed: int, number: int, text: str) -> str:
    """Return the source of a pytest file for a failed case."""
    said = "".join(letter if (letter.isprintable() and letter not in '\\"') or letter == "\n" else "?" for letter in text[-LONGEST_TEXT:])
    arguments = "".join(f"        {name}={value!r},\n" for name, value in case.items())
    numbers = "from math import inf, nan  # noqa: F401\n" if re.search(r"\b(inf|nan)\b", arguments) else ""
    return (
        f'"""Case {number} of {attack.name}, seed {seed}.\n\n{said.strip()}\n"""\n\n{numbers}from pathlib import Path\n\n'
        f"from {attack.check.__module__} import {attack.check.__name__}\n\n\n"
        f"def test_{attack.name}_{seed}_{number}(tmp_path: Path) -> None:\n"
        f"    {attack.check.__name__}(\n        tmp_path,\n{arguments}    )\n"
    )


def write_ready_test(folder: Path, attack: Attack, case: Arguments, seed: int, number: int, text: str) -> Path:
    """Write `ready_test` into the folder, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"test_{attack.name}_{seed}_{number}.py"
    path.write_text(ready_test(attack, case, seed, number, text), encoding="utf-8")
    return path
