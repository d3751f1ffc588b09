"""Results that builds of the site share: kept under `build/`, and computed anew when the package changes."""

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import quietbits

ROOT = Path(quietbits.__file__).parent
FOLDER = ROOT / "build" / "site-results"


# Code that the results depend on: the package, and the modules here that compute them.
SOURCES = ("analysis", "design", "solvers", "docs/generators/mechanism_errors.py", "docs/generators/explorer_page.py")


@cache
def code_digest() -> str:
    """Return a digest of the code that the results depend on."""
    digest = hashlib.sha256()
    for source in SOURCES:
        path = ROOT / source
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(ROOT).as_posix().encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def stored(name: str, compute: Callable[[], Any]) -> Any:
    """Return a JSON document of that name, which `compute` makes if the package has changed since it was stored."""
    path = FOLDER / f"{name}.json"
    if path.exists():
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["digest"] == code_digest():
            return document["result"]
    result = compute()
    FOLDER.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"digest": code_digest(), "result": result}), encoding="utf-8")
    # A later build reads the stored value, so this build returns the same.
    return json.loads(path.read_text(encoding="utf-8"))["result"]
