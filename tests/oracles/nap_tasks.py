"""Slow tasks for sweeps on workers in other processes, which import this module."""

import os
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Nap:
    """Task that takes a while, and returns the number of its process."""

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
    """Task that ends every worker that runs it."""

    def run(self, _: list[int]) -> list[dict[str, object]]:
        os._exit(1)
