"""Lookup tables for numbers: design, exact whole numbers, certificate, file, export."""
