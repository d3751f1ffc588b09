"""The DP-REC mechanism: samples of a shared prior, their coding, and messages."""
