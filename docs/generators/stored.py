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


@cache
def package_digest() -> str:
    """Return a digest of the package's code, and of the generators of the site."""
    digest = hashlib.sha256()
    floors = ("analysis", "design", "docs/generators", "figures", "solvers")
    for path in sorted(path for floor in floors for path in (ROOT / floor).rglob("*.py")):
        digest.update(path.relative_to(ROOT).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def stored(name: str, compute: Callable[[], Any]) -> Any:
    """Return a JSON document of that name, which `compute` makes if the package has changed since it was stored."""
    path = FOLDER / f"{name}.json"
    if path.exists():
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["digest"] == package_digest():
            return document["result"]
    result = compute()
    FOLDER.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"digest": package_digest(), "result": result}), encoding="utf-8")
    # What is returned is what a later build reads.
    return json.loads(path.read_text(encoding="utf-8"))["result"]
