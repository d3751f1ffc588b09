"""DP-REC: samples of a shared prior, their coding, and messages."""
