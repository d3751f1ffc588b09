"""Tasks that take a while, for sweeps on workers in other processes, which import this module."""

import os
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Nap:
    """A task that takes a while, and says which process took it."""

    number: int
    seconds: float = 0.05
    design: str | None = None
    seed: int = 0

    @property
    def name(self) -> str:
        return f"nap {self.number}"

    setting = name

    def prepare(self, cache: Path | None) -> list[int]:
        assert cache is not None
        assert cache.is_absolute()
        return list(range(1000))

    def run(self, prepared: list[int]) -> list[dict[str, object]]:
        time.sleep(self.seconds)
        return [{"number": self.number, "square": prepared[self.number] ** 2}]


@dataclass(frozen=True)
class Deadly(Nap):
    """A task that ends every worker it is given to."""

    def run(self, _: list[int]) -> list[dict[str, object]]:
        os._exit(1)
