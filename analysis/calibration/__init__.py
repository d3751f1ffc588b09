"""Parameters that meet a privacy target, on the safe side."""
