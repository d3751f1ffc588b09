"""The registry's entries, a file per trust model."""
