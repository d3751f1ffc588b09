"""The largest memory of a process, on Linux only."""

from pathlib import Path


def peak_mebibytes(process: int | str = "self") -> float:
    """Return the largest memory of a process so far, in MiB."""
    lines = Path("/proc", str(process), "status").read_text().splitlines()
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
